"""The media type of an artifact, by its first bytes and its name.

Content wins over the name: a file called ``.png`` that is none is not announced as one. The tables are our own, for
the standard library's differ between versions and machines. Pure.
"""

from typing import Final

SNIFF_BYTES: Final = 4096
BINARY: Final = "application/octet-stream"
PLAIN: Final = "text/plain"
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
    (b"\x89HDF\r\n\x1a\n", "application/x-hdf5"),
)
_ZIP: Final = b"PK\x03\x04"
_ZIP_BASED: Final = {
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "ods": "application/vnd.oasis.opendocument.spreadsheet",
    "odt": "application/vnd.oasis.opendocument.text",
    "epub": "application/epub+zip",
}
_TEXT: Final = {
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "html": "text/html",
    "htm": "text/html",
    "css": "text/css",
    "md": "text/markdown",
    "py": "text/x-python",
    "js": "text/javascript",
    "svg": "image/svg+xml",
    "xml": "application/xml",
    "json": "application/json",
    "geojson": "application/geo+json",
    "jsonl": "application/x-ndjson",
    "ndjson": "application/x-ndjson",
    "ipynb": "application/x-ipynb+json",
    "yaml": "application/yaml",
    "yml": "application/yaml",
    "toml": "application/toml",
    "sql": "application/sql",
}


def media_type(path: str, first: bytes) -> str:
    """Return the type of the file at ``path`` that begins with ``first`` (up to SNIFF_BYTES)."""
    for magic, known in _MAGIC:
        if first.startswith(magic):
            return known
    name = path.rpartition("/")[2]
    extension = name.rpartition(".")[2].lower()
    if first.startswith(_ZIP):
        return _ZIP_BASED.get(extension, "application/zip")
    if first[:4] == b"RIFF" and first[8:12] == b"WEBP":
        return "image/webp"
    return _TEXT.get(extension, PLAIN) if _is_text(first) else BINARY


def _is_text(first: bytes) -> bool:
    if b"\x00" in first:
        return False
    try:
        first.decode()
    except UnicodeDecodeError as error:
        return len(first) == SNIFF_BYTES and error.reason == "unexpected end of data"
    return True
