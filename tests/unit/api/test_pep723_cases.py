"""The PEP 723 block, case by case: the rows of the table that other tools were tried with."""

from typing import Final

import pytest

from sandyard_api.pep723 import ScriptError, ScriptMetadata, read_script
from sandyard_api.reasons import Reason

DEPENDENCY: Final = '# dependencies = ["zzz-dep"]'
READ: Final = ScriptMetadata(dependencies=("zzz-dep",))
NONE: Final = ScriptMetadata()


def script(*lines: str) -> str:
    return "\n".join(lines) + "\n"


def block(*body: str) -> str:
    return script("# /// script", *body, "# ///")


CANONICAL: Final = block(DEPENDENCY)

ACCEPTED: Final = {
    "01 canonical": (CANONICAL, READ),
    "02 CRLF everywhere": (CANONICAL.replace("\n", "\r\n"), READ),
    "03 lone CR": (CANONICAL.replace("\n", "\r"), NONE),
    "04 byte order mark": ("\ufeff" + CANONICAL, READ),
    "04 byte order mark, as bytes": (b"\xef\xbb\xbf" + CANONICAL.encode(), READ),
    "05 opener CRLF, rest LF": (CANONICAL.replace("\n", "\r\n", 1), READ),
    "06 shebang and coding line first": (
        script("#!/usr/bin/env python3", "# -*- coding: utf-8 -*-", "") + CANONICAL,
        READ,
    ),
    "06 shebang directly before": (script("#!/usr/bin/env python3") + CANONICAL, READ),
    "07 block after code": (script("import os", "") + CANONICAL, READ),
    "08 no newline at the end": (CANONICAL.rstrip("\n"), READ),
    "08 carriage return at the end": (CANONICAL.rstrip("\n") + "\r", READ),
    "14 inside a triple-quoted string": (script('"""') + CANONICAL + script('"""'), READ),
    "15 indented block": (script(*(f"    {line}" for line in CANONICAL.splitlines())), NONE),
    "17 no space before the slashes": (script("#/// script", DEPENDENCY, "# ///"), NONE),
    "17 two spaces before the slashes": (script("#  /// script", DEPENDENCY, "# ///"), NONE),
    "19 lone # in the body": (block("#", DEPENDENCY, "#"), READ),
    "23 closer, then plain comments": (CANONICAL + script("# a comment", "#", "# another"), READ),
    "25 closer inside a TOML string": (
        block(DEPENDENCY, "# [tool.thing]", "# text = '''", "# ///", "# more", "# '''"),
        ScriptMetadata(("zzz-dep",), None, ("ignored, for the class decides about the install: [tool.thing]",)),
    ),
    "26 empty block": (block(), NONE),
    "27 body of lone # only": (block("#", "#"), NONE),
    "28 type in capitals": (script("# /// SCRIPT", DEPENDENCY, "# ///"), NONE),
    "29 the obsolete type pyproject": (script("# /// pyproject", DEPENDENCY, "# ///"), NONE),
    "30 another block before": (script("# /// other", "# x = 1", "# ///", "") + CANONICAL, READ),
    "30 another block before, unclosed": (script("# /// other", "# x = 1", "") + CANONICAL, READ),
    "31 script start inside another block": (
        script("# /// other", "# /// script", DEPENDENCY, "# ///"),
        NONE,
    ),
    "31 blanks after a script start inside another block": (
        script("# /// other", "# /// script ", DEPENDENCY, "# ///"),
        NONE,
    ),
    "43 U+2028 in a comment": (block("# # a\u2028b", DEPENDENCY), READ),
    "45 no block at all": ("print('hello')\n", NONE),
    "45 nothing at all": ("", NONE),
    "45 the opener's words elsewhere": ('x = "# /// script"\n', NONE),
    "requires-python": (block('# requires-python = ">= 3.11"'), ScriptMetadata((), ">=3.11")),
    "requires-python, any": (block('# requires-python = ","'), ScriptMetadata((), "")),
    "dependencies over several lines": (
        block("# dependencies = [", '#   "Pandas >= 2 , <3",', '#   "pandas",  # again', "# ]"),
        ScriptMetadata(("Pandas<3,>=2", "pandas")),
    ),
}

REFUSED: Final = {
    "09 unclosed, code follows": (script("# /// script", DEPENDENCY, "print(1)"), 1, "not closed"),
    "09 unclosed at the end": (script("# /// script", DEPENDENCY), 1, "not closed"),
    "10 two blocks": (CANONICAL + script("") + CANONICAL, 5, "second"),
    "11 two blocks without a gap": (CANONICAL + CANONICAL, 4, "second"),
    "12 closed, then an unclosed second": (CANONICAL + script("", "# /// script", "x = 1"), 5, "second"),
    "12 a second opener in the same comment": (CANONICAL + script("# /// script"), 4, "second"),
    "13 unclosed first, closed second": (script("# /// script", "x = 1") + CANONICAL, 2, "interrupted"),
    "16 no space after # in the body": (block("#dependencies = []"), 2, "space"),
    "18 tab after # in the body": (block("#\tdependencies = []"), 2, "space"),
    "20 blank line in the body": (block(DEPENDENCY, "", "# x"), 3, "interrupted"),
    "21 blanks after the opener": (script("# /// script  ", DEPENDENCY, "# ///"), 1, "remove them"),
    "22 blanks after the closer": (script("# /// script", DEPENDENCY, "# ///\t"), 3, "remove them"),
    "24 closer, comment, second closer": (CANONICAL + script("# a comment", "# ///"), 3, "TOML"),
    "31 unclosed script after another block": (
        script("# /// other", "# x", "# ///", "# /// script", "# y"),
        4,
        "not closed",
    ),
    "34 unknown key": (block(DEPENDENCY, "# colour = 1"), 3, "colour"),
    "34 requires_python": (block('# requires_python = ">=3.11"'), 2, "requires_python"),
    "35 dependencies as a string": (block('# dependencies = "six"'), 2, "list of strings"),
    "35 dependencies as a table": (block("# [dependencies]", "# six = 1"), 2, "list of strings"),
    "36 dependencies of numbers": (block("# dependencies = [1]"), 2, "list of strings"),
    "38 requires-python as a number": (block("# requires-python = 3"), 2, "string"),
    "38 requires-python as a list": (block("# requires-python = []"), 2, "string"),
    "39 requires-python of no version": (block('# requires-python = "abc"'), 2, "abc"),
    "39 requires-python without operator": (block('# requires-python = "3.11"'), 2, "3.11"),
    "41 bad TOML": (block("# dependencies = ['a'"), 2, "TOML"),
    "41 the same key twice": (block(DEPENDENCY, DEPENDENCY), 3, "TOML"),
    "42 form feed in a comment": (block("# # a\x0cb"), 2, "TOML"),
    "44 not UTF-8": (b"x = 1\ny = '\xe9'\n", 2, "UTF-8"),
    "44 a lone surrogate": ("x = 1\ny = '\ud800'\n", 2, "surrogate"),
    "tool that is no table": (block("# tool = 1"), 2, "table"),
    "a number too long for Python": (block(f"# tool.x = {'9' * 5000}"), 1, "too long"),
    "a version too long for Python": (block(f"# requires-python = '>={'9' * 5000}'"), 2, "PEP 440"),
    "arrays without end": (block("# x = " + "[" * 8000), 1, "nested"),
}


@pytest.mark.parametrize(("code", "expected"), ACCEPTED.values(), ids=ACCEPTED.keys())
def test_is_read(code: str | bytes, expected: ScriptMetadata) -> None:
    assert read_script(code) == expected


@pytest.mark.parametrize(("code", "line", "word"), REFUSED.values(), ids=REFUSED.keys())
def test_is_an_invalid_script(code: str | bytes, line: int, word: str) -> None:
    with pytest.raises(ScriptError) as caught:
        read_script(code)
    assert caught.value.reason is Reason.INVALID_SCRIPT
    assert caught.value.line == line
    assert str(caught.value).startswith(f"line {line}: ")
    assert word in str(caught.value)


def test_37_a_dependency_that_is_none_is_invalid_and_named_with_its_line() -> None:
    with pytest.raises(ScriptError, match=r"^line 3: dependency '\?\?\?' is not a requirement") as caught:
        read_script(block("# requires-python = '>=3.11'", '# dependencies = ["???"]'))
    assert caught.value.reason is Reason.INVALID_DEPENDENCY


@pytest.mark.parametrize(
    ("tool", "named"),
    [
        (["# [tool.x]", "# a = 1"], "[tool.x]"),  # row 32
        (["# [[tool.uv.index]]", '# url = "https://pick.invalid"'], "[tool.uv.index]"),  # row 33
        (["# [tool.uv.sources]", "# [tool.hatch]"], "[tool.uv.sources], [tool.hatch]"),
        (["# [tool]", '# "a b" = 1'], "[tool.'a b']"),
        (["# [tool]", r'# "a\nb" = 1'], r"[tool.'a\nb']"),
        (["# [tool]", *(f"# t{n} = 1" for n in range(18))], "[tool.t15] and 2 more"),
    ],
)
def test_32_33_tool_tables_are_read_never_honoured_and_named(tool: list[str], named: str) -> None:
    read = read_script(block(DEPENDENCY, *tool))
    assert read.dependencies == ("zzz-dep",)
    assert len(read.warnings) == 1
    assert read.warnings[0].endswith(named)


def test_an_empty_tool_table_is_nothing_to_warn_about() -> None:
    assert read_script(block("# [tool]")) == NONE


def metadata_of(size: int) -> str:
    """Return a block whose metadata is of that size: text without prefixes, one newline a line."""
    head = 'dependencies = ["zzz-dep"]\n'
    return block(DEPENDENCY, "# #" + "x" * (size - len(head) - len("#\n")))


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_metadata_is_bounded_in_bytes_without_its_comment_signs(newline: str) -> None:
    assert read_script(metadata_of(8192).replace("\n", newline)) == READ
    with pytest.raises(ScriptError, match="8193 bytes of metadata, at most 8192") as caught:
        read_script(metadata_of(8193).replace("\n", newline))
    assert caught.value.reason is Reason.LIMIT_EXCEEDED
    assert caught.value.line == 1


def test_metadata_counts_bytes_and_not_characters() -> None:
    assert read_script(block("# #" + "é" * 4095)) == NONE  # 4097 characters, 8192 bytes
    with pytest.raises(ScriptError, match="8194 bytes"):
        read_script(block("# #" + "é" * 4096))


def test_the_size_comes_before_the_toml() -> None:
    with pytest.raises(ScriptError) as caught:
        read_script(block("# [" * 8192))
    assert caught.value.reason is Reason.LIMIT_EXCEEDED


def test_a_class_may_lower_the_bound_of_metadata() -> None:
    assert read_script(CANONICAL, max_metadata_bytes=27) == READ
    with pytest.raises(ScriptError, match="at most 26"):
        read_script(CANONICAL, max_metadata_bytes=26)


def test_dependencies_are_counted_two_spellings_of_one_name_as_two() -> None:
    def declared(count: int) -> str:
        return block(f"# dependencies = {['Six', 'six'] * (count // 2) + ['six'] * (count % 2)}")

    assert len(read_script(declared(20)).dependencies) == 20
    with pytest.raises(ScriptError, match=r"^line 2: 21 dependencies are declared, at most 20") as caught:
        read_script(declared(21))
    assert caught.value.reason is Reason.LIMIT_EXCEEDED
    assert len(read_script(declared(21), max_dependencies=21).dependencies) == 21
