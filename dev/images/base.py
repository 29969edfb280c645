"""The root that all images start from: Debian with Python 3.13, by mmdebstrap or from the public image.

Named by what it is made of. Debian's updates are taken in when it is made anew: ``make images REFRESH=1``.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from images.context import digest_of
from images.errors import ImageError
from images.programs import require, run
from images.settings import ROOT, Settings

SUITE: Final = "trixie"
FOLDER: Final = ROOT / "images" / "base"
EPOCH: Final = "1767225600"  # 2026-01-01: the time of every file, so that the same packages make the same bytes
SOURCES: Final = (Path("/etc/apt/sources.list.d"), Path("/etc/apt/sources.list"))
IMPORT: Final = "FROM scratch\nADD base.tar /\n"


def digest(settings: Settings) -> str:
    """Return a digest of what the base is made of."""
    files = sorted((path.name, path) for path in FOLDER.iterdir() if path.is_file())
    return digest_of(files, ("architecture", settings.architecture), ("suite", SUITE))


def bootstrap(settings: Settings, folder: Path, *, log: Path) -> None:
    """Make a build context in ``folder`` that imports a root made by mmdebstrap."""
    require("mmdebstrap", log=log)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    packages = ",".join((FOLDER / "packages.txt").read_text().split())
    finish = 'cp "$SANDYARD_FINISH" "$1/tmp/finish.py" && chroot "$1" /usr/bin/python3.13 -I /tmp/finish.py'
    with tempfile.TemporaryDirectory(prefix=".bootstrap-", dir=folder.parent) as temporary:
        command = [
            *("mmdebstrap", "--variant=essential", f"--architectures={settings.architecture}"),
            *(f"--include={packages}", "--aptopt=Acquire::Retries 3"),
            f'--customize-hook={finish} && rm "$1/tmp/finish.py"',
            *(SUITE, str(folder / "base.tar"), *mirrors()),
        ]
        environment = {
            **os.environ,
            "SANDYARD_FINISH": str(FOLDER / "finish.py"),
            "SOURCE_DATE_EPOCH": EPOCH,
            "TMPDIR": temporary,
        }
        run(command, log=log, env=environment, fix="see the lines above; Debian's archive must be reachable")
    (folder / "Dockerfile").write_text(IMPORT)


def mirrors() -> list[str]:
    """Return Debian's archives as this machine knows them, for the suite of the images."""
    found = []
    for uri, suite, codename in _sources():
        if suite == codename:
            found += [f"deb {uri} {SUITE} main", f"deb {uri} {SUITE}-updates main"]
        elif suite == f"{codename}-security":
            found.append(f"deb {uri} {SUITE}-security main")
    if not found:
        raise ImageError(
            "no Debian archive is configured on this machine, and there is no Docker.",
            fix="build on Debian, or where Docker can reach a registry",
        )
    return list(dict.fromkeys(found))


def _sources() -> Iterator[tuple[str, str, str]]:
    """Yield (address, suite, this machine's codename) of each archive of Debian's own."""
    codename = _codename()
    for text in _source_files():
        for stanza in text.split("\n\n"):
            pairs = (line.partition(":") for line in stanza.splitlines() if not line.startswith((" ", "#")))
            fields = {key.strip(): value.strip() for key, _, value in pairs}
            if "debian-archive-keyring" in fields.get("Signed-By", ""):
                for uri in fields["URIs"].split():
                    yield from ((uri, suite, codename) for suite in fields["Suites"].split())
            for line in stanza.splitlines():
                words = [word for word in line.split() if not word.startswith("[") and not word.endswith("]")]
                if words[:1] == ["deb"] and len(words) > 2 and words[2].startswith(codename):  # noqa: PLR2004
                    yield words[1], words[2], codename


def _source_files() -> Iterator[str]:
    for place in SOURCES:
        paths = sorted(place.glob("*")) if place.is_dir() else [place] if place.exists() else []
        yield from (path.read_text() for path in paths)


def _codename() -> str:
    try:
        lines = Path("/etc/os-release").read_text().splitlines()
    except FileNotFoundError:
        return ""
    return dict(line.split("=", 1) for line in lines if "=" in line).get("VERSION_CODENAME", "").strip('"')
