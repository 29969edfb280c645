"""Generate the CustomResourceDefinitions: ``crds/`` and the chart's copy, from the models.

``python -m sandyard_api.crdgen`` writes them; ``--check`` writes nothing and fails where a file is not
what the models say. A development tool: it reads and writes files of the checkout and needs PyYAML.
"""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import BaseModel

from sandyard_api.names import GROUP, VERSION
from sandyard_api.pool import PoolStatus, SandboxPool
from sandyard_api.sandbox import Sandbox, SandboxStatus
from sandyard_api.sandbox_class import ClassStatus, SandboxClass
from sandyard_api.structural import structural
from sandyard_api.task import SandboxTask
from sandyard_api.task_status import TaskStatus

ROOT: Final = Path(__file__).parents[3]
TARGETS: Final = (ROOT / "crds", ROOT / "helm" / "sandyard" / "files" / "crds")
HEADER: Final = "# Generated from the models of sandyard_api by `make crds`. Edits here are lost.\n"
CATEGORY: Final = "sandyard"
WIDE: Final = 1  # shown by `kubectl get -o wide` only
LINE_CHARACTERS: Final = 110


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of ``kubectl get``."""

    name: str
    path: str
    type: str = "string"
    priority: int = 0
    description: str

    def render(self) -> dict[str, Any]:
        """Return it as the CRD has it."""
        rendered: dict[str, Any] = {
            "name": self.name,
            "jsonPath": self.path,
            "type": self.type,
            "description": self.description,
        }
        return rendered | ({"priority": self.priority} if self.priority else {})


AGE: Final = Column(name="Age", path=".metadata.creationTimestamp", type="date", description="When it was created.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What a CRD says besides its schema."""

    model: type[BaseModel]
    status: type[BaseModel]
    plural: str
    short_name: str
    namespaced: bool = True
    columns: tuple[Column, ...]
    selectable: tuple[str, ...] = ()
    scale: bool = False

    @property
    def name(self) -> str:
        """Return the kind's name."""
        return self.model.__name__


def _class_column(priority: int) -> Column:
    return Column(name="Class", path=".spec.sandboxClassName", priority=priority, description="The SandboxClass.")


PHASE: Final = Column(name="Phase", path=".status.phase", description="Where it is.")
REASON: Final = Column(name="Reason", path=".status.reason", description="Why it is there.")
BY_STATE: Final = (".status.phase", ".spec.sandboxClassName")

KINDS: Final = (
    Kind(
        model=SandboxTask,
        status=TaskStatus,
        plural="sandboxtasks",
        short_name="sbt",
        columns=(
            PHASE,
            REASON,
            Column(
                name="Exit",
                path=".status.result.exitCode",
                type="integer",
                description="The script's exit status.",
            ),
            Column(
                name="Warm",
                path=".status.warm",
                type="boolean",
                priority=WIDE,
                description="Whether the pod was taken from a pool.",
            ),
            _class_column(WIDE),
            Column(
                name="Run",
                path=".status.timings.runMilliseconds",
                type="integer",
                description="How long the script ran, in milliseconds.",
            ),
            AGE,
        ),
        selectable=BY_STATE,
    ),
    Kind(
        model=Sandbox,
        status=SandboxStatus,
        plural="sandboxes",
        short_name="sb",
        columns=(
            PHASE,
            REASON,
            Column(
                name="Warm",
                path=".status.warm",
                type="boolean",
                description="Whether the pod was taken from a pool.",
            ),
            Column(
                name="Idle",
                path=".status.lastActivityTime",
                type="date",
                description="Since something last ran.",
            ),
            AGE,
        ),
        selectable=BY_STATE,
    ),
    Kind(
        model=SandboxPool,
        status=PoolStatus,
        plural="sandboxpools",
        short_name="sbp",
        columns=(
            _class_column(0),
            Column(name="Wanted", path=".spec.replicas", type="integer", description="Pods to keep warm."),
            Column(
                name="Ready",
                path=".status.readyReplicas",
                type="integer",
                description="Pods that can be claimed.",
            ),
            AGE,
        ),
        selectable=(".spec.sandboxClassName",),
        scale=True,
    ),
    Kind(
        model=SandboxClass,
        status=ClassStatus,
        plural="sandboxclasses",
        short_name="sbc",
        namespaced=False,
        columns=(
            Column(name="Python", path=".status.python", description="The image's Python."),
            Column(name="Image", path=".spec.image", priority=WIDE, description="The runtime image."),
            AGE,
        ),
    ),
)


def definition(kind: Kind) -> dict[str, Any]:
    """Return a kind's CustomResourceDefinition."""
    names = {
        "kind": kind.name,
        "listKind": f"{kind.name}List",
        "plural": kind.plural,
        "singular": kind.name.lower(),
        "shortNames": [kind.short_name],
        "categories": [CATEGORY],
    }
    subresources: dict[str, Any] = {"status": {}}
    if kind.scale:
        subresources["scale"] = {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        }
    version: dict[str, Any] = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _schema(kind)},
        "subresources": subresources,
        "additionalPrinterColumns": [column.render() for column in kind.columns],
    }
    if kind.selectable:
        version["selectableFields"] = [{"jsonPath": path} for path in kind.selectable]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": names,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [version],
        },
    }


def _schema(kind: Kind) -> dict[str, Any]:
    """Return the object's schema; type and metadata are the API server's own business."""
    schema = structural(kind.model)
    fields = schema["properties"]
    # Defaults in a status would be read back as something that was never written.
    status = structural(kind.status, defaults=False) | {"description": fields["status"]["description"]}
    required = [name for name in schema["required"] if name != "metadata"]
    del schema["required"]
    schema["properties"] = {
        "apiVersion": {"type": "string", "description": f"Always {GROUP}/{VERSION}."},
        "kind": {"type": "string", "description": f"Always {kind.name}."},
        "metadata": {"type": "object"},
        "spec": fields["spec"],
        "status": status,
    }
    return schema | ({"required": required} if required else {})


class _Dumper(yaml.SafeDumper):
    """Writes everything out where it stands, without YAML's anchors."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - PyYAML's signature
        return True


def render(kind: Kind) -> str:
    """Return a kind's file."""
    body = yaml.dump(definition(kind), Dumper=_Dumper, allow_unicode=True, width=LINE_CHARACTERS)
    return HEADER + body


def files() -> dict[Path, str]:
    """Return each file that is generated, with its text."""
    return {
        target / f"{GROUP}_{kind.plural}.yaml": text for kind in KINDS for text in (render(kind),) for target in TARGETS
    }


def main(arguments: list[str] | None = None) -> int:
    """Write the files, or tell which are not as they should be."""
    parser = argparse.ArgumentParser(prog="crdgen", description="Generate the CRDs from the models.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a file differs")
    check = parser.parse_args(arguments).check
    wanted = files()
    wrong = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    stale = [path for target in TARGETS for path in target.glob(f"{GROUP}_*.yaml") if path not in wanted]
    for path in [*wrong, *stale]:
        if check:
            verb = "differs from the models; run `make crds`"
        elif path in wanted:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted[path])
            verb = "written"
        else:
            path.unlink()
            verb = "removed"
        sys.stdout.write(f"{path.relative_to(ROOT)}: {verb}\n")
    return 1 if check and (wrong or stale) else 0


if __name__ == "__main__":
    sys.exit(main())
