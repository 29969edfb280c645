"""Bring everything up that a task needs: cluster, images, the private index, the chart. Safe to repeat."""

import json
import os
import secrets
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any, Final

from yard.steps import ROOT, StepError, Steps, main, run

RELEASE: Final = "sandyard"
NAMESPACE: Final = "sandyard-system"
INDEX_NAMESPACE: Final = "sandyard-index"
INDEX_USER: Final = "sandyard"
CREDENTIALS_SECRET: Final = "index-credentials"  # noqa: S105 - a name
INDEX_HOST: Final = f"index.{INDEX_NAMESPACE}.svc.cluster.local"
READY: Final = "--timeout=90s"


def cache_folder() -> Path:
    """Return the user's cache folder for builds."""
    configured = os.environ.get("SANDYARD_CACHE")
    return (
        Path(configured) if configured else Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "sandyard"
    )


@cache
def environment() -> dict[str, str]:
    """Return what programs need to reach the cluster: KUBECONFIG, and our kubectl and helm first on PATH."""
    kubeconfig = os.environ.get("KUBECONFIG") or run(["make", "-s", "kubeconfig"], title="kubeconfig").strip()
    return {"KUBECONFIG": kubeconfig, "PATH": f"{cache_folder() / 'node' / 'bin'}:{os.environ['PATH']}"}


def images() -> dict[str, Any]:
    """Return the references of the images last built."""
    path = cache_folder() / "images" / "images.json"
    if not path.exists():
        raise StepError(f"{path} is not there: build the images first with `make images`.")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def bring_up(steps: Steps) -> None:
    """Do it all, one step after another."""
    steps.command("cluster", ["make", "cluster"], live=True)
    steps.command("images", ["make", "images"], live=True)
    deploy(steps)


def deploy(steps: Steps) -> None:
    """Install the private index and the chart into the cluster that is up."""
    steps.call("private index", install_index)
    steps.call("chart", install_chart)


def install_index() -> None:
    """Apply the index with a password of its own, kept from the first time on."""
    for namespace in (INDEX_NAMESPACE, NAMESPACE):
        apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    password = current_password() or secrets.token_urlsafe(16)
    netrc = f"machine {INDEX_HOST}\nlogin {INDEX_USER}\npassword {password}\n"
    apply(secret(NAMESPACE, CREDENTIALS_SECRET, {"netrc": netrc}))
    apply(secret(INDEX_NAMESPACE, "index-password", {"username": INDEX_USER, "password": password}))
    manifest = (ROOT / "dev" / "index" / "index.yaml").read_text().replace("INDEX_IMAGE", images()["index"]["ref"])
    kubectl("apply", "-f", "-", stdin=manifest)
    kubectl("-n", INDEX_NAMESPACE, "rollout", "status", "deployment/index", READY)


def current_password() -> str:
    """Return the index's password if it has one already."""
    read = kubectl(
        "-n",
        INDEX_NAMESPACE,
        "get",
        "secret",
        "index-password",
        "--ignore-not-found",
        "-o",
        "go-template={{.data.password | base64decode}}",
    )
    return read.strip().removesuffix("<no value>")


def install_chart() -> None:
    """Install or upgrade the chart with the images of this checkout and the private index."""
    found = images()
    values = {
        "operator": {"image": found["operator"]["digestRef"], "replicas": 1},
        "defaultClass": {
            "image": found["runtime"]["digestRef"],
            "index": {
                "url": f"http://{INDEX_HOST}:8080/simple/",
                "credentialsSecretRef": {"name": CREDENTIALS_SECRET, "key": "netrc"},
                "egress": {
                    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": INDEX_NAMESPACE}},
                    "podSelector": {"matchLabels": {"app": "index"}},
                    "ports": [{"protocol": "TCP", "port": 8080}],
                },
            },
        },
    }
    helm = [
        "helm",
        "upgrade",
        "--install",
        RELEASE,
        ROOT / "helm" / "sandyard",
        "--namespace",
        NAMESPACE,
        "--values",
        "-",
    ]
    done = subprocess.run(
        [str(part) for part in helm],
        input=json.dumps(values),
        text=True,
        capture_output=True,
        check=False,
        env={**os.environ, **environment()},
    )
    if done.returncode != 0:
        raise StepError(f"helm: {done.stderr.strip()}")
    kubectl("-n", NAMESPACE, "rollout", "status", "deployment", READY)


def apply(manifest: dict[str, Any]) -> None:
    """Apply one object."""
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=json.dumps(manifest))


def secret(namespace: str, name: str, data: dict[str, str]) -> dict[str, Any]:
    """Return a Secret manifest."""
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data}


def kubectl(*args: str, stdin: str | None = None) -> str:
    """Run kubectl; raise StepError with what it said when it fails."""
    done = subprocess.run(
        ["kubectl", *args],
        input=stdin,
        text=True,
        capture_output=True,
        check=False,
        env={**os.environ, **environment()},
    )
    if done.returncode != 0:
        raise StepError(f"kubectl {' '.join(args)}: {done.stderr.strip()}")
    return done.stdout


if __name__ == "__main__":
    main(deploy if sys.argv[1:] == ["deploy"] else bring_up)
