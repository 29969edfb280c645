"""The text of a stream as a status shows it: whole when short, else its head and its tail.

Pure. Bytes that are not UTF-8 become U+FFFD, a cut never splits a character, and the result never exceeds its
limit in UTF-8 bytes.
"""

import codecs
from typing import Final

_CONTINUATION: Final = range(0x80, 0xC0)
_LONGEST_CHARACTER: Final = 4


def excerpt(head: bytes, tail: bytes, *, size: int, limit: int) -> str:
    """Shorten ``size`` bytes to ``limit``.

    ``head`` and ``tail`` are their first and last ``limit`` bytes; of less than that, ``head`` is all.
    """
    if len(head) == size:
        text = head.decode(errors="replace")
        encoded = text.encode()
        if len(encoded) <= limit:
            return text
        head = tail = encoded
    mark = f"\n[... cut here: {size} bytes in all ...]\n"
    room = limit - len(mark)
    return mark.join((_first(head, room // 2), _last(tail, room - room // 2)))


def _first(data: bytes, limit: int) -> str:
    """Decode from the start, as many whole characters as fit."""
    text = codecs.getincrementaldecoder("utf-8")("replace").decode(data[:limit])
    return _fit(text.encode()[:limit])


def _last(data: bytes, limit: int) -> str:
    """Decode up to the end, as many whole characters as fit."""
    data = data[-limit:]
    text = data[_torn(data) :].decode(errors="replace").encode()[-limit:]
    return text[_torn(text) :].decode()


def _fit(encoded: bytes) -> str:
    return codecs.getincrementaldecoder("utf-8")("strict").decode(encoded)


def _torn(data: bytes) -> int:
    """Count the leading bytes that belong to a character begun before the cut."""
    count = 0
    while count < min(len(data), _LONGEST_CHARACTER - 1) and data[count] in _CONTINUATION:
        count += 1
    return count
