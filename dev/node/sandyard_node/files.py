"""Write a file whole or not at all, and not when it has that content already."""

from pathlib import Path


def write(path: Path, content: str | bytes, *, mode: int = 0o644) -> None:
    """Write by one rename; an abort leaves the old file or the new one."""
    data = content.encode() if isinstance(content, str) else content
    if path.exists() and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    fresh.touch(mode=mode)
    fresh.write_bytes(data)
    fresh.rename(path)
