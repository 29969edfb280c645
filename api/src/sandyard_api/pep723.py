"""Read the PEP 723 ``script`` block of a script: dependencies and requires-python, nothing else.

A linear scan over lines finds the block, a size cap comes before the TOML parser, and whatever is wrong is a
ScriptError with line and hint. Stricter than the PEP where it lets tools choose: an unclosed block, a second
one and an unknown key are errors. ``[tool]`` is never honoured. Pure, but not for an event loop.

Source: the inline script metadata specification of packaging.python.org.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import tomli

from sandyard_api.limits import DEPENDENCIES, METADATA_BYTES
from sandyard_api.reasons import Reason
from sandyard_api.requirements import python_satisfies, read_dependencies, read_requires_python
from sandyard_api.script_error import ScriptError, quote

__all__ = [
    "Block",
    "ScriptError",
    "ScriptMetadata",
    "decode",
    "python_satisfies",
    "read_script",
    "script_block",
]

OPENER: Final = "# /// script"
CLOSER: Final = "# ///"
BYTE_ORDER_MARK: Final = "\ufeff"
NAMED_TOOLS: Final = 16  # ignored tables that a warning names

_ANY_OPENER: Final = re.compile(r"# /// [A-Za-z0-9-]+")
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_BLANKS: Final = " \t"


@dataclass(frozen=True, slots=True)
class ScriptMetadata:
    """What a script declares; dependencies in their normal form (``str(Requirement)``), in order."""

    dependencies: tuple[str, ...] = ()
    requires_python: str | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """The text of a block without its comment signs, and the line of its opener, counted from 1."""

    line: int
    content: tuple[str, ...]

    @property
    def text(self) -> str:
        """Return the TOML document."""
        return "".join(f"{line}\n" for line in self.content)


def read_script(
    code: str | bytes,
    *,
    max_metadata_bytes: int = METADATA_BYTES,
    max_dependencies: int = DEPENDENCIES,
) -> ScriptMetadata:
    """Return what a script declares; raises ScriptError and nothing else."""
    block = script_block(decode(code))
    if block is None:
        return ScriptMetadata()
    text = block.text
    size = len(text.encode())
    if size > max_metadata_bytes:
        raise ScriptError(
            Reason.LIMIT_EXCEEDED,
            f"the script block holds {size} bytes of metadata, at most {max_metadata_bytes} are allowed",
            line=block.line,
        )
    return _read_table(_parse(text, block), block, max_dependencies)


def decode(code: str | bytes) -> str:
    """Return a script's text, without a byte order mark; it is UTF-8 whatever it declares."""
    try:
        text = code.decode() if isinstance(code, bytes) else code
        text.encode()  # a lone surrogate is no text either
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ScriptError(
            Reason.INVALID_SCRIPT, "the script is not UTF-8", line=line, hint="save it as UTF-8"
        ) from error
    except UnicodeEncodeError as error:
        line = error.object.count("\n", 0, error.start) + 1
        raise ScriptError(Reason.INVALID_SCRIPT, "the script holds a lone surrogate", line=line) from error
    return text.removeprefix(BYTE_ORDER_MARK)


def script_block(text: str) -> Block | None:
    """Return the one script block of a text; an unclosed one or a second one is an error."""
    if OPENER not in text:
        return None
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    found: Block | None = None
    for start, end in _comment_runs(lines):
        first, closer = _enclosed(lines, start, end)
        visible: Iterable[int] = range(start, end)
        if lines[first] != OPENER:
            visible = (*range(start, first), *range(closer, end))  # a block of another type is not read
        for index in visible:
            if lines[index].rstrip(_BLANKS) != OPENER:
                continue
            if lines[index] != OPENER:
                _fail("blanks follow the opening line of a script block", index, "remove them")
            if found is not None:
                _fail("a second script block starts here", index, "a script has at most one")
            if index >= closer:
                _fail_unclosed(lines, index, end)
            found = Block(index + 1, tuple(line[2:] for line in lines[index + 1 : closer]))
    return found


def _comment_runs(lines: list[str]) -> Iterator[tuple[int, int]]:
    """Yield start and end of each unbroken run of lines that could be in a block."""
    start: int | None = None
    for index, line in enumerate(lines):
        if line == "#" or line.startswith("# "):
            start = index if start is None else start
        elif start is not None:
            yield start, index
            start = None
    if start is not None:
        yield start, len(lines)


def _enclosed(lines: list[str], start: int, end: int) -> tuple[int, int]:
    """Return opener and closer of the block in a run; twice the same index where there is none.

    The last closer of a run counts, so a run holds one block: that of its first opener.
    """
    closer = next((index for index in range(end - 1, start, -1) if lines[index] == CLOSER), start)
    first = next((index for index in range(start, closer) if _ANY_OPENER.fullmatch(lines[index])), closer)
    return first, closer


def _fail_unclosed(lines: list[str], opener: int, end: int) -> NoReturn:
    """Say why a block that was opened has no end."""
    for index in range(opener + 1, end):
        if lines[index].rstrip(_BLANKS) == CLOSER:
            _fail("blanks follow the closing line of the script block", index, "remove them")
    if end < len(lines) and lines[end].startswith("#"):
        _fail(
            "a line of the script block must be # alone, or # and a space before its text",
            end,
            "put a space after the #",
        )
    if any(line == CLOSER for line in lines[end:]):
        _fail("the script block is interrupted by a line that is no comment", end, "start it with #")
    _fail("the script block is not closed", opener, f"end it with a line that is exactly {CLOSER}")


def _fail(message: str, index: int, hint: str) -> NoReturn:
    raise ScriptError(Reason.INVALID_SCRIPT, message, line=index + 1, hint=hint)


def _parse(text: str, block: Block) -> dict[str, Any]:
    try:
        return tomli.loads(text)
    except tomli.TOMLDecodeError as error:
        raise ScriptError(
            Reason.INVALID_SCRIPT,
            f"the script block is not TOML: {error.msg}",
            line=block.line + min(error.lineno, len(block.content)),
        ) from error
    except (ValueError, RecursionError) as error:
        raise ScriptError(
            Reason.INVALID_SCRIPT,
            "the script block is nested too deeply or holds a number that is too long",
            line=block.line,
        ) from error


def _read_table(table: dict[str, Any], block: Block, max_dependencies: int) -> ScriptMetadata:
    dependencies = table.pop("dependencies", [])
    requires_python = table.pop("requires-python", None)
    tool = table.pop("tool", {})
    for key in table:
        raise _located(
            block,
            key,
            f"unknown key {quote(key)} in the script block",
            "only dependencies, requires-python and [tool] may stand there",
        )
    if not isinstance(tool, dict):
        raise _located(block, "tool", "tool must be a table", "")
    if not isinstance(dependencies, list) or not all(isinstance(item, str) for item in dependencies):
        raise _located(block, "dependencies", "dependencies must be a list of strings", "")
    if not isinstance(requires_python, str | None):
        raise _located(block, "requires-python", "requires-python must be a string", "")
    try:
        return ScriptMetadata(
            dependencies=read_dependencies(dependencies, max_items=max_dependencies),
            requires_python=None if requires_python is None else read_requires_python(requires_python),
            warnings=_warnings(tool),
        )
    except ScriptError as error:
        key = "requires-python" if error.reason is Reason.INVALID_SCRIPT else "dependencies"
        line = _line_of(block, key)
        raise ScriptError(error.reason, error.message, line=line, hint=error.hint) from error


def _located(block: Block, key: str, message: str, hint: str) -> ScriptError:
    return ScriptError(Reason.INVALID_SCRIPT, message, line=_line_of(block, key), hint=hint)


def _line_of(block: Block, key: str) -> int:
    """Return the line where a key is likely written; the block's own where it is written in another way."""
    lines = (number for number, line in enumerate(block.content, 1) if line.lstrip(" \t[\"'").startswith(key))
    return block.line + next(lines, 0)


def _warnings(tool: dict[str, Any]) -> tuple[str, ...]:
    """Name the tables below [tool], down to the second level, that a script cannot decide about."""
    tables = list(_tables(tool))
    if not tables:
        return ()
    named = ", ".join(f"[{'.'.join(('tool', *map(_key, path)))}]" for path in tables[:NAMED_TOOLS])
    more = f" and {len(tables) - NAMED_TOOLS} more" if len(tables) > NAMED_TOOLS else ""
    return (f"ignored, for the class decides about the install: {named}{more}",)


def _tables(tool: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for name, value in tool.items():
        below = value.items() if isinstance(value, dict) else ()
        inner = [key for key, item in below if isinstance(item, dict | list)]
        yield from ((name, key) for key in inner)
        if not inner:
            yield (name,)


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else quote(name)
