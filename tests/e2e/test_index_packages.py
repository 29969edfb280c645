"""The packages of images/index that are broken, or do harm, each through a task: what ends how, and what never runs."""

import json

import pytest

from harness.tenant import Tenant

# What a run must not reach, whatever the package tries on import; images/index/packages/sandyard-harm has the deeds.
REPORT = """
import json
import sandyard_harm
print(json.dumps(sandyard_harm.done))
"""


def script(body: str, *packages: str) -> str:
    return f"# /// script\n# dependencies = {json.dumps(packages)}\n# ///\n{body}\n"


@pytest.mark.parametrize(
    ("packages", "reason"),
    [
        (["sandyard-source"], "NoWheelAvailable"),
        (["sandyard-elsewhere"], "NoWheelAvailable"),
        (["sandyard-future"], "NoWheelAvailable"),
        (["sandyard-left", "sandyard-right"], "DependencyConflict"),
        (["sandyard-shared==3"], "DependencyNotFound"),
        (["sandyard-mislinked"], "HashMismatch"),
        (["sandyard-truncated"], "InstallFailed"),
        (["sandyard-misrecorded"], "InstallFailed"),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, list) else value,
)
def test_a_broken_package_ends_the_task_before_its_script(tenant: Tenant, packages: list[str], reason: str) -> None:
    status = tenant.run(script("print('ran')", *packages))
    assert (status["phase"], status["reason"]) == ("Failed", reason), status
    assert "run" not in status


def test_a_bomb_is_stopped_at_the_tasks_disk_limit(tenant: Tenant) -> None:
    resources = {"limits": {"ephemeral-storage": "500Mi"}}
    status = tenant.run(script("print('ran')", "sandyard-bomb"), resources=resources)
    assert (status["phase"], status["reason"]) == ("Failed", "InstallFailed"), status
    assert str(500 * 1024 * 1024) in status["message"]


def test_a_package_works(tenant: Tenant) -> None:
    status = tenant.run(script("import sandyard_pure; print(sandyard_pure.greet('yard'))", "sandyard-pure"))
    assert status["result"]["stdout"]["text"] == "hello, yard\n"


def test_one_side_of_a_conflict_works(tenant: Tenant) -> None:
    status = tenant.run(script("import sandyard_shared; print(sandyard_shared.__version__)", "sandyard-right"))
    assert status["result"]["stdout"]["text"] == "2.0\n"


def test_path_files_and_scripts_of_a_wheel_are_inert(tenant: Tenant) -> None:
    body = (
        "import os, pathlib, subprocess, sys, sandyard_handy\n"
        "subprocess.run([sys.executable, '-c', 'pass'], check=True)\n"
        "site = pathlib.Path(sandyard_handy.__file__).parents[1]\n"
        "print('SANDYARD_HANDY_PTH' in os.environ, os.path.exists('/tmp/sandyard-handy-canary'),"
        " (site / 'bin').exists(), (site / 'share/sandyard-handy.txt').read_text())"
    )
    status = tenant.run(script(body, "sandyard-handy"))
    assert status["result"]["stdout"]["text"] == "False False False data of a wheel\n\n"


def test_a_path_in_a_wheel_never_climbs_out(tenant: Tenant) -> None:
    body = (
        "import os, pathlib, sandyard_climbing\n"
        "print([str(path) for root in ('/sandyard', '/tmp', '/workspace')"
        " for path in pathlib.Path(root).rglob('sandyard-climbed*') if os.access(root, os.R_OK)])"
    )
    status = tenant.run(script(body, "sandyard-climbing"))
    assert status["result"]["stdout"]["text"] == "[]\n", status


def test_a_link_in_a_wheel_leads_nowhere(tenant: Tenant) -> None:
    body = (
        "import pathlib, sandyard_linking\n"
        "path = pathlib.Path(sandyard_linking.__file__).with_name('users.txt')\n"
        "print(path.is_symlink(), path.read_text())"
    )
    status = tenant.run(script(body, "sandyard-linking"))
    assert status["result"]["stdout"]["text"] == "False /etc/passwd\n"


def test_a_package_that_does_harm_does_none(tenant: Tenant) -> None:
    status = tenant.run(script(REPORT, "sandyard-harm"))
    assert status["phase"] == "Succeeded", status
    done = json.loads(status["result"]["stdout"]["text"])
    assert len(done) > 10
    assert {deed for deed, outcome in done.items() if outcome == "done"} == set()


def test_a_package_of_another_version_than_the_images_wins(tenant: Tenant) -> None:
    body = "import numpy, pandas; print(numpy.__version__, pandas.__version__)"
    status = tenant.run(script(body, "numpy==2.3.5", "pandas==2.3.3"), runTimeoutSeconds=60)
    assert status["result"]["stdout"]["text"] == "2.3.5 2.3.3\n"
