"""Media types of artifacts: by content first, by name where the content allows it."""

import pytest

from sandyard_runtime.agent.media import SNIFF_BYTES, media_type

PNG = b"\x89PNG\r\n\x1a\n\x00"


@pytest.mark.parametrize(
    ("path", "first", "expected"),
    [
        ("plot.png", PNG, "image/png"),
        ("plot.txt", PNG, "image/png"),
        ("plot.png", b"not one", "text/plain"),
        ("plot.png", b"\x00\x01", "application/octet-stream"),
        ("a.csv", b"x,y\n1,2\n", "text/csv"),
        ("a.json", b"{}", "application/json"),
        ("a.jsonl", b"{}\n", "application/x-ndjson"),
        ("a.svg", b"<svg/>", "image/svg+xml"),
        ("a.html", b"<p>", "text/html"),
        ("README", b"words", "text/plain"),
        ("empty", b"", "text/plain"),
        ("t.parquet", b"PAR1\x15", "application/vnd.apache.parquet"),
        ("t.xlsx", b"PK\x03\x04", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
        ("t.zip", b"PK\x03\x04", "application/zip"),
        ("t.png", b"PK\x03\x04", "application/zip"),
        ("p", b"RIFF\x00\x00\x00\x00WEBP", "image/webp"),
        ("d.pdf", b"%PDF-1.7", "application/pdf"),
        ("latin.txt", b"caf\xe9", "application/octet-stream"),
        ("no/dots.d/name", b"words", "text/plain"),
    ],
)
def test_type(path: str, first: bytes, expected: str) -> None:
    assert media_type(path, first) == expected


def test_a_character_cut_by_the_look_is_still_text() -> None:
    first = b"x" * (SNIFF_BYTES - 1) + "\u00e9".encode()[:1]
    assert media_type("a.txt", first) == "text/plain"
