"""Pin the Go modules anew: ``python -m sandyard_node.lock GROUP VERSION`` writes that group's go.mod and go.sum.

A group keeps the programs its go.mod names. A Kubernetes minor that is not there yet starts from the programs of the
default one, with the staging modules of its own release, which Kubernetes' go.mod only knows as folders.
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from sandyard_node.errors import NodeError
from sandyard_node.settings import DEFAULT_MINOR, HERE

KUBERNETES: Final = "kubernetes-"
STAGING: Final = re.compile(r"^\s*(k8s\.io/[a-z0-9-]+) =>", re.MULTILINE)
TOOL: Final = re.compile(r"^(?:tool |\t)([a-z0-9.-]+\.[a-z]+/\S+)$", re.MULTILINE)


def lock(group: str, version: str) -> None:
    """Write a group's go.mod and go.sum for one version of its programs."""
    folder = HERE / "go" / group
    source = folder / "go.mod"
    if group.startswith(KUBERNETES) and not source.exists():
        source = HERE / "go" / f"{KUBERNETES}{DEFAULT_MINOR}" / "go.mod"
    if not source.exists():
        raise NodeError(f"{group} is no group of programs.", fix=f"see the folders of {HERE / 'go'}")
    tools = TOOL.findall(source.read_text())
    fresh = folder.with_name(f".{group}")
    fresh.mkdir(exist_ok=True)
    for leftover in fresh.iterdir():
        leftover.unlink()
    replacements = _staging(version) if group.startswith(KUBERNETES) else ""
    go = re.search(r"^go .*$", source.read_text(), re.MULTILINE)
    head = f"module sandyard.dev/node/{group}\n\n{go[0] if go else ''}\n"
    (fresh / "go.mod").write_text(head + replacements)
    _go("get", "-tool", *(f"{tool}@{version}" for tool in tools), folder=fresh)
    folder.mkdir(exist_ok=True)
    for name in ("go.mod", "go.sum"):
        (fresh / name).rename(folder / name)
    fresh.rmdir()


def _staging(version: str) -> str:
    module = json.loads(_go("mod", "download", "-json", f"k8s.io/kubernetes@{version}", folder=Path("/")))
    names = sorted(set(STAGING.findall(Path(module["GoMod"]).read_text())))
    published = version.replace("v1.", "v0.", 1)
    lines = "".join(f"\t{name} => {name} {published}\n" for name in names)
    return f"\nrequire k8s.io/kubernetes {version}\n\nreplace (\n{lines})\n"


def _go(*args: str, folder: Path) -> str:
    done = subprocess.run(["go", *args], cwd=folder, text=True, capture_output=True, check=False)
    if done.returncode != 0:
        raise NodeError(f"go {' '.join(args[:2])}: {done.stderr.strip()[-800:]}", fix="is that version published?")
    return done.stdout


def main() -> int:
    """Lock the group of the command line."""
    try:
        group, version = sys.argv[1:]
        lock(group, version)
    except ValueError:
        print("usage: python -m sandyard_node.lock GROUP VERSION, as kubernetes-1.37 v1.37.2", file=sys.stderr)
        return 2
    except NodeError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
