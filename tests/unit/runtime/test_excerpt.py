"""The text of a stream: whole when short, head and tail when long, and never half a character."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandyard_runtime.agent.excerpt import excerpt

LIMIT = 100
MARK = "\n[... cut here: "


def shorten(data: bytes, limit: int = LIMIT) -> str:
    return excerpt(data[:limit], data[-limit:], size=len(data), limit=limit)


@given(st.binary(max_size=400))
def test_no_bytes_make_it_longer_than_its_limit(data: bytes) -> None:
    assert len(shorten(data).encode()) <= LIMIT


@given(st.text(max_size=400))
def test_a_cut_splits_no_character(text: str) -> None:
    data = text.encode()
    short = shorten(data)
    if len(data) <= LIMIT:
        assert short == text
        return
    head, _, rest = short.partition(MARK)
    tail = rest.partition("]\n")[2]
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head.encode()) + len(tail.encode()) >= LIMIT - len(f"{MARK}{len(data)} bytes in all ...]\n") - 6


@pytest.mark.parametrize(("size", "cut"), [(LIMIT, False), (LIMIT + 1, True)])
def test_the_limit_is_exact(size: int, *, cut: bool) -> None:
    assert (MARK in shorten(b"x" * size)) is cut


def test_what_is_not_utf8_becomes_a_replacement_character() -> None:
    assert shorten(b"a\xffb") == "a\ufffdb"


@pytest.mark.parametrize(("count", "cut"), [(33, False), (34, True)])
def test_replacements_count_as_long_as_they_are(count: int, *, cut: bool) -> None:
    assert (MARK in shorten(b"\xff" * count)) is cut
