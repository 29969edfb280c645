"""The media type of an artifact, by its first bytes and its name.

Content wins over the name: a file called ``.png`` that is none is not announced as one. Standard library
only.
"""

import mimetypes
from typing import Final

SNIFF_BYTES: Final = 4096
BINARY: Final = "application/octet-stream"
_MAGIC: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"PAR1", "application/vnd.apache.parquet"),
    (b"ARROW1", "application/vnd.apache.arrow.file"),
    (b"\x1f\x8b", "application/gzip"),
    (b"SQLite format 3\x00", "application/vnd.sqlite3"),
)
_ZIP: Final = b"PK\x03\x04"
_ZIP_BASED: Final = (
    "application/vnd.openxmlformats",
    "application/vnd.oasis.opendocument",
    "application/epub",
)
_TEXT: Final = {
    ".jsonl": "application/x-ndjson",
    ".ndjson": "application/x-ndjson",
    ".ipynb": "application/x-ipynb+json",
    ".md": "text/markdown",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".toml": "application/toml",
}
_TEXT_TYPES: Final = ("application/json", "application/xml", "application/javascript", "image/svg+xml")
_names = mimetypes.MimeTypes(filenames=())


def media_type(path: str, first: bytes) -> str:
    """Return the type of the file at ``path`` that begins with ``first`` (up to SNIFF_BYTES)."""
    for magic, known in _MAGIC:
        if first.startswith(magic):
            return known
    extension = path[path.rfind(".") :].lower()
    named = _TEXT.get(extension) or _names.guess_type(f"x{extension}", strict=True)[0] or ""
    if first.startswith(_ZIP):
        return named if named.startswith(_ZIP_BASED) else "application/zip"
    if first[:4] == b"RIFF" and first[8:12] == b"WEBP":
        return "image/webp"
    if b"\x00" in first or not _is_text(first):
        return BINARY
    if extension in _TEXT or named.startswith("text/") or named in _TEXT_TYPES:
        return named
    return "text/plain"


def _is_text(first: bytes) -> bool:
    try:
        first.decode()
    except UnicodeDecodeError as error:
        return len(first) == SNIFF_BYTES and error.start > len(first) - 4 and error.reason == "unexpected end of data"
    return True
