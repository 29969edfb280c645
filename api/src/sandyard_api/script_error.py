"""The one error of the PEP 723 reader and of the requirement rules."""

from typing import Final

from sandyard_api.reasons import Reason

QUOTED_CHARACTERS: Final = 80  # of the user's own text in a message


class ScriptError(ValueError):
    """A script that cannot be taken: why, where, and what to do; ``str()`` is the whole sentence.

    ``reason`` is InvalidScript, InvalidDependency or LimitExceeded; ``line`` counts from 1 and is None
    where no single line is meant.
    """

    def __init__(self, reason: Reason, message: str, *, line: int | None = None, hint: str = "") -> None:
        self.reason = reason
        self.message = message
        self.line = line
        self.hint = hint
        where = "" if line is None else f"line {line}: "
        super().__init__(f"{where}{message}" + (f"; {hint}" if hint else ""))


def quote(text: str) -> str:
    """Return the user's text for a message: escaped, and cut where it is long."""
    shown = text if len(text) <= QUOTED_CHARACTERS else f"{text[:QUOTED_CHARACTERS]}…"
    return ascii(shown) if not shown.isprintable() else repr(shown)
