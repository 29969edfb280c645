"""The reader against anything: it raises its own error only, in linear work, and agrees with the PEP."""

import re
import sys
from types import FrameType
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandyard_api import pep723
from sandyard_api.pep723 import ScriptError, ScriptMetadata, read_script, script_block
from sandyard_api.reasons import Reason

# The canonical expression of the specification.
CANONICAL: Final = re.compile(r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$")

PIECES: Final = st.sampled_from(
    [
        "# /// script",
        "# /// script ",
        "# /// other",
        "# ///",
        "# /// ",
        "#",
        "# ",
        "#x",
        "",
        "x = 1",
        "# dependencies = ['six']",
        "# dependencies = [",
        "# ]",
        '# requires-python = ">=3.8"',
        "# [tool.x]",
        "# x = '''",
        "# '''",
        "\ufeff",
        "# \ud800",
        "# \x0c",
        '"""',
    ]
)
ENDINGS: Final = st.sampled_from(["\n", "\r\n", "\r", "\u2028", ""])


def result(code: str | bytes) -> ScriptMetadata | Reason:
    try:
        return read_script(code)
    except ScriptError as error:
        return error.reason


@given(st.lists(st.tuples(PIECES, ENDINGS), max_size=24))
def test_a_script_of_telling_pieces_is_read_or_refused(pieces: list[tuple[str, str]]) -> None:
    result("".join(text + ending for text, ending in pieces))


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    result(text)
    result(f"# /// script\n# {text}\n# ///\n")


@given(st.binary())
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    result(data)
    result(b"# /// script\n# " + data + b"\n# ///\n")


@given(st.text(alphabet="[]{}=.,'\"\\#\n \tab09-:+einfx", max_size=400))
def test_any_toml_is_read_or_refused(text: str) -> None:
    body = "\n".join(f"# {line}" for line in text.split("\n"))
    result(f"# /// script\n{body}\n# ///\n")
    result(f"# /// script\n# dependencies = {text!r}\n# ///\n")


LINES: Final = st.lists(
    st.sampled_from(["x = 1", "#!/usr/bin/python", "", "# a comment", "#", "    # /// script"]), max_size=6
)
BODY: Final = st.lists(st.sampled_from(["#", "# x", "#  y", "# # ///", "# // /", "# \u2028"]), min_size=1)


@given(before=LINES, body=BODY, after=LINES, foreign=st.booleans(), last=st.sampled_from(["", "\n"]))
def test_a_well_formed_block_is_the_one_of_the_specification(
    *, before: list[str], body: list[str], after: list[str], foreign: bool, last: str
) -> None:
    other = ["# /// other", "# z", "# ///", ""] if foreign else []
    text = "\n".join([*before, "", *other, "# /// script", *body, "# ///", *after]) + last
    (match,) = (found for found in CANONICAL.finditer(text) if found["type"] == "script")
    expected = re.sub(r"(?m)^# ?", "", match["content"])
    block = script_block(text)
    assert block is not None
    assert block.text == expected
    assert block.line == text.count("\n", 0, match.start()) + 1


def work(code: str) -> int:
    """Count the lines of the reader that run for a script."""
    steps = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal steps
        steps += event == "line"
        return trace if frame.f_code.co_filename == pep723.__file__ else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        result(code)
    finally:
        sys.settrace(before)
    return steps


@pytest.mark.parametrize(
    "line",
    [
        "# /// script\n",
        "# /// other\n",
        "# /// script\n\n",
        "# /// other\n\n",
        "# /// other\n# ///\n",
        "# /// other\n# x\n# ///\n\n",
        "# ///\n",
        "#\n",
        "# # /// script\n",
        "\n",
        "# /// x # /// script\n",
    ],
)
@pytest.mark.parametrize("head", ["", "# /// script\n# x = 1\n# ///\n\n", "# /// other\n"])
def test_the_work_grows_with_the_script_and_no_faster(line: str, head: str) -> None:
    once, twice = work(head + line * 1000), work(head + line * 2000)
    assert twice <= 2 * once + 100


@pytest.mark.parametrize("line", ["# /// script\n", "# /// other\n", "# ///\n", "# # /// script\n", "\n"])
def test_a_hostile_script_of_full_size_costs_bounded_work(line: str) -> None:
    assert work("# /// other\n" + line * (262144 // len(line))) < 3_000_000
