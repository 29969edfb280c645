"""Secrets in what comes back: found whole, in pieces, and where a cap cut them."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sandyard_runtime.agent.redaction import REDACTED, Redactor

SECRETS = ("abcdefgh", "abcdefghijkl", "zzzzzzzz", "short")


def stream(pieces: list[bytes], *, torn: bool = False) -> bytes:
    redactor = Redactor(SECRETS).stream()
    return b"".join([*(redactor.feed(piece) for piece in pieces), redactor.finish(torn=torn)])


@given(st.lists(st.sampled_from(["abcdefgh", "abcdefghijkl", "zzzz", "ab", "x", "", "ijkl", "z"])), st.data())
def test_pieces_come_out_as_the_whole_does(words: list[str], data: st.DataObject) -> None:
    text = "".join(words)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)))))
    edges = [0, *cuts, len(text)]
    pieces = [text[start:end].encode() for start, end in pairwise(edges)]
    assert stream(pieces).decode() == Redactor(SECRETS).text(text)


def test_the_longest_secret_wins() -> None:
    assert Redactor(SECRETS).text("abcdefghijklm") == f"{REDACTED}m"


def test_short_values_are_left_alone() -> None:
    assert Redactor(SECRETS).text("a short word") == "a short word"


def test_without_secrets_nothing_is_held_back() -> None:
    redactor = Redactor([]).stream()
    assert redactor.feed(b"anything") == b"anything"
    assert redactor.finish(torn=True) == b""


def test_a_secret_the_cap_cut_is_not_half_shown() -> None:
    assert stream([b"say abcdefg"], torn=True) == f"say {REDACTED}".encode()
    assert stream([b"say abcdefg"]) == b"say abcdefg"
    assert stream([b"say abc"], torn=True) == b"say abc"
