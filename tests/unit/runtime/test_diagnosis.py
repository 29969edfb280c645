"""What of the installer's words may be shown, and what no one may read."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandyard_api.wire import TEXT_BYTES
from sandyard_runtime.agent.install.diagnosis import MESSAGE_CHARACTERS, Curtain, Reason, diagnose

CURTAIN: Final = Curtain(
    url="https://index.example:8443/private/simple/", netrc="machine index.example login reader password hunter2-long"
)
WORDS: Final = """error: Request failed after 2 retries in 3.0s
  cause: Failed to fetch: https://index.example:8443/private/simple/six/?token=abc
  cause: https://reader:hunter2-long@files.example/a/b/six-1.0-py3-none-any.whl
  cause: could not resolve index.example for reader with hunter2-long
"""


def test_nothing_tells_where_the_index_is_or_who_asks() -> None:
    shown = CURTAIN.hide(WORDS)
    for secret in ("index.example", "files.example", "reader", "hunter2", "token", "private", "8443"):
        assert secret not in shown
    assert "<index>/six\n" in shown
    assert "<index>/six-1.0-py3-none-any.whl" in shown


@given(st.text())
def test_no_words_make_it_fail_or_grow(text: str) -> None:
    assert len(CURTAIN.message(text)) <= MESSAGE_CHARACTERS
    assert len(CURTAIN.excerpt(text * 5).encode()) <= TEXT_BYTES


def test_terminal_escapes_are_taken_out() -> None:
    assert CURTAIN.hide("a\x1b]52;c;aGk=\x07b\r\n\x9bc") == "a]52;c;aGk=b\nc"


def test_an_excerpt_is_the_end() -> None:
    assert CURTAIN.excerpt("x" * TEXT_BYTES + "end").endswith("end")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("", Reason.INSTALL_FAILED),
        ("thread 'main' panicked", Reason.INSTALL_FAILED),
        ("No space left on device (os error 28)", Reason.INSTALL_FAILED),
        ("hint: returned a 403 Forbidden error. was not found in the package registry", Reason.INDEX_AUTH_FAILED),
        ("a was not found in the package registry. depends on b, incompatible", Reason.DEPENDENCY_NOT_FOUND),
    ],
)
def test_the_strongest_sign_decides(words: str, reason: Reason) -> None:
    assert diagnose(words) is reason
