"""The images as they run: no rights, a read-only root, everything compiled, Python as children find it."""

import json
import subprocess
from dataclasses import dataclass
from typing import Any

import pytest

from harness.tenant import Tenant, eventually, new_tenant
from sandyard_api import names

LOOK = """
import json, multiprocessing, os, stat, subprocess, sys, time
from pathlib import Path

def site_of(_):
    import numpy
    return numpy.__file__

def sources(folder):
    return [path for path in Path(folder).rglob("*.py") if "lib2to3" not in path.parts]

def compiled(path):
    cached = path.parent / "__pycache__" / f"{path.stem}.cpython-313.pyc"
    return cached.exists() and int.from_bytes(cached.read_bytes()[4:8], "little") == 0b01  # unchecked hash

def walk(root):
    for folder, folders, files in os.walk(root):
        if folder == "/":
            folders[:] = [name for name in folders if name not in {"proc", "sys", "dev", "tmp", "look"}]
        yield from (os.path.join(folder, name) for name in ["", *files])

if __name__ == "__main__":
    seen = {"uid": os.getuid(), "python": sys.version.split()[0], "path": sys.path}
    ours = [f"/opt/sandyard/{name}" for name in os.listdir("/opt/sandyard") if name != "image"]
    places = ["/usr/lib/python3.13", *ours]
    seen["uncompiled"] = [str(path) for place in places for path in sources(place) if not compiled(path)]
    everything = [(path, os.lstat(path).st_mode) for path in walk("/")]
    mine = [path for path, mode in everything if os.lstat(path).st_uid == os.getuid()]
    seen["setid"] = [path for path, mode in everything if not stat.S_ISLNK(mode) and mode & 0o6000]
    open_to_all = stat.S_IWOTH | stat.S_ISVTX
    seen["writable"] = [path for path, mode in everything
                        if not stat.S_ISLNK(mode) and mode & open_to_all == stat.S_IWOTH] + mine
    seen["secrets"] = [path for path, _ in everything if os.path.basename(path) in
                       {"pip.conf", ".netrc", "uv.toml", ".pypirc", "auth.conf"}]
    seen["pip"] = [path for path, _ in everything if os.path.basename(path) in {"pip", "pip3", "ensurepip"}]
    seen.update(globals().get("more", dict)())
    print(json.dumps(seen))
"""

RUNTIME = """
def more():
    child = [sys.executable, "-c", "import sys, pandas; print(sys.path); print(pandas.__file__)"]
    answers = {"child": subprocess.run(child, capture_output=True, text=True).stdout}
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        answers["spawned"] = pool.apply(site_of, (0,))
    bare = ["/usr/bin/python3.13", "-I", "-S", "-c", "import sys; print(sys.path)"]
    answers["bare"] = subprocess.run(bare, capture_output=True, text=True).stdout
    uv = ["/opt/sandyard/agent/bin/uv", "--version"]
    answers["uv"] = subprocess.run(uv, capture_output=True, text=True).stdout
    agent = ["/opt/sandyard/agent/bin/python", "-I", "-c",
             "import sys, sandyard_runtime.agent.server, sandyard_api.wire; print(sys.path); import numpy"]
    done = subprocess.run(agent, capture_output=True, text=True)
    answers["agent"], answers["agent error"] = done.stdout, done.stderr
    runner = ["/usr/bin/python3.13", "-I", "-S", "-c", "import sys; sys.path.insert(0, '/opt/sandyard/runtime');"
              "import sandyard_runtime.supervisor.main, sandyard_runtime.worker.template; print('ok')"]
    answers["runner"] = subprocess.run(runner, capture_output=True, text=True).stdout
    answers["runner has agent"] = os.path.exists("/opt/sandyard/runtime/sandyard_runtime/agent")
    import numpy.testing, pandas.testing, pyarrow.parquet, pyarrow.dataset, pyarrow.flight, duckdb
    os.environ.update(MPLBACKEND="Agg", MPLCONFIGDIR="/tmp/.matplotlib")
    import matplotlib.pyplot
    matplotlib.pyplot.plot([1, 2])
    matplotlib.pyplot.savefig("/tmp/plot.png")
    answers["plot"] = os.path.getsize("/tmp/plot.png")
    answers["fonts"] = [path.name for path in Path("/opt/sandyard/site/.matplotlib").iterdir()]
    answers["made"] = [path.name for path in Path("/tmp/.matplotlib").iterdir() if path.suffix == ".json"]
    answers["packages"] = json.loads(Path("/opt/sandyard/packages.json").read_text())
    return answers
"""

OPERATOR = """
def more():
    import sandyard_operator, kopf, kubernetes
    absent = {}
    for name in ("pandas", "numpy", "pyarrow", "sandyard_runtime"):
        try:
            __import__(name)
            absent[name] = False
        except ModuleNotFoundError:
            absent[name] = True
    return {"absent": absent}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """An image, how its Python is called, and what else to look at."""

    name: str
    image: str
    python: str
    uid: int
    more: str


def look(tenant: Tenant, subject: Subject) -> dict[str, Any]:
    """Run LOOK in a pod under Pod Security ``restricted``, from a file, and return what it saw."""
    config = tenant.config_map({"look.py": subject.more + LOOK})
    container = {
        "name": "c",
        "image": subject.image,
        "command": [subject.python, "/look/look.py"],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "runAsUser": subject.uid,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "look", "mountPath": "/look"}, {"name": "tmp", "mountPath": "/tmp"}],
    }
    spec = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
        "volumes": [{"name": "look", "configMap": {"name": config}}, {"name": "tmp", "emptyDir": {}}],
    }
    tenant.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": subject.name}, "spec": spec})
    phase = eventually(
        lambda: tenant.get(subject.name, "pod").get("status", {}).get("phase"),
        lambda phase: phase in {"Succeeded", "Failed"},
        seconds=180,
    )
    log = tenant.kubectl("logs", subject.name).stdout
    assert phase == "Succeeded", log
    seen: dict[str, Any] = json.loads(log)
    return seen


def deployed(kind: str, name: str, path: str, namespace: str) -> str:
    command = ["kubectl", "-n", namespace, "get", kind, name, "-o", f"jsonpath={path}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def restricted() -> Any:
    with new_tenant("images") as tenant:
        label = "pod-security.kubernetes.io/enforce=restricted"
        subprocess.run(["kubectl", "label", "namespace", tenant.namespace, label], check=True, capture_output=True)
        yield tenant


@pytest.fixture(scope="module")
def runtime(restricted: Tenant) -> dict[str, Any]:
    image = deployed("sbc", "default", "{.spec.image}", "default")
    python = "/usr/bin/python3.13"
    return look(restricted, Subject(name="runtime", image=image, python=python, uid=names.RUNNER_UID, more=RUNTIME))


@pytest.fixture(scope="module")
def operator(restricted: Tenant) -> dict[str, Any]:
    path = "{.spec.template.spec.containers[0].image}"
    image = deployed("deployment", names.OPERATOR_NAME, path, "sandyard-system")
    return look(restricted, Subject(name="operator", image=image, python="python", uid=10000, more=OPERATOR))


@pytest.fixture(params=["runtime", "operator"])
def image(request: pytest.FixtureRequest) -> dict[str, Any]:
    seen: dict[str, Any] = request.getfixturevalue(request.param)
    return seen


def test_nothing_gains_rights_and_nothing_can_be_written(image: dict[str, Any]) -> None:
    assert image["setid"] == []
    assert image["writable"] == []  # even if the root were not read-only


def test_no_installer_and_no_configuration_of_one_is_in_it(image: dict[str, Any]) -> None:
    assert image["secrets"] == []
    assert image["pip"] == []


def test_every_module_is_compiled_for_good(image: dict[str, Any]) -> None:
    assert image["uncompiled"] == []


def test_python_is_the_one_promised(image: dict[str, Any]) -> None:
    assert image["python"].startswith("3.13.")


def test_children_see_own_packages_before_the_images(runtime: dict[str, Any]) -> None:
    assert runtime["child"].splitlines()[-1].startswith(f"{names.IMAGE_SITE}/pandas/")
    assert runtime["spawned"].startswith(f"{names.IMAGE_SITE}/numpy/")
    places = [place for place in runtime["path"] if "/dist-packages" not in place]
    assert places[-1] == names.IMAGE_SITE
    assert places[-2].startswith("/usr/lib/python3.13")


def test_the_bare_interpreter_sees_the_standard_library_alone(runtime: dict[str, Any]) -> None:
    assert "sandyard" not in runtime["bare"]
    assert "/usr/lib/python3.13" in runtime["bare"]
    assert runtime["runner"] == "ok\n"
    assert runtime["runner has agent"] is False


def test_the_agent_has_its_own_packages_and_none_of_the_scripts(runtime: dict[str, Any]) -> None:
    assert "/opt/sandyard/agent/lib" in runtime["agent"], runtime["agent error"]
    assert names.IMAGE_SITE not in runtime["agent"]
    assert "No module named 'numpy'" in runtime["agent error"]
    assert runtime["uv"].startswith("uv ")


def test_a_plot_works_and_its_fonts_are_listed_beforehand(runtime: dict[str, Any]) -> None:
    assert runtime["plot"] > 1000
    assert len(runtime["fonts"]) == 1
    assert runtime["made"] == runtime["fonts"]  # the same version's list


def test_the_list_of_packages_is_true(runtime: dict[str, Any]) -> None:
    listed = {each["name"].lower() for each in runtime["packages"]}
    assert {"numpy", "pandas", "pyarrow", "duckdb", "matplotlib"} <= listed


def test_the_operator_has_no_data_packages(operator: dict[str, Any]) -> None:
    assert operator["absent"] == dict.fromkeys(["pandas", "numpy", "pyarrow", "sandyard_runtime"], True)
    assert operator["uid"] == 10000
