"""Wrong input ends in its typed reason before a pod is made, or is refused by the API server."""

from typing import Any

import pytest

from harness.tenant import Tenant, task_manifest


def block(*lines: str) -> str:
    """Return a script with a PEP 723 block of these lines."""
    return "\n".join(["# /// script", *(f"# {line}" for line in lines), "# ///", "print('ran')", ""])


@pytest.mark.parametrize(
    ("spec", "reason", "words"),
    [
        ({"code": "# /// script\nprint(1)\n"}, "InvalidScript", ["line 1"]),
        ({"code": block("dependencies = ['a'")}, "InvalidScript", ["line"]),
        ({"code": block("colour = 1")}, "InvalidScript", ["colour"]),
        ({"code": block("requires-python = '3.11'")}, "InvalidScript", ["requires-python"]),
        (
            {"code": block("dependencies = ['six @ https://example.invalid/six.whl']")},
            "InvalidDependency",
            ["six"],
        ),
        (
            {"code": block("dependencies = ['--index-url=https://example.invalid']")},
            "InvalidDependency",
            ["index-url"],
        ),
        ({"code": block(r'dependencies = ["six\n--index-url x"]')}, "InvalidDependency", []),
        ({"code": block("dependencies = ['./local']")}, "InvalidDependency", ["./local"]),
        ({"code": block("dependencies = ['thing.whl']")}, "InvalidDependency", ["thing.whl"]),
        ({"code": block("requires-python = '>=3.99'")}, "PythonVersionUnsatisfied", ["3.99"]),
        ({"code": block("# " + "x" * 8192)}, "LimitExceeded", ["8192"]),
        ({"code": "print(1)", "sandboxClassName": "no-such-class"}, "ClassNotFound", ["no-such-class"]),
        ({"code": "print(1)", "runTimeoutSeconds": 3601}, "NotAllowed", ["runTimeoutSeconds"]),
        ({"code": "print(1)", "installTimeoutSeconds": 901}, "NotAllowed", ["installTimeoutSeconds"]),
        ({"code": "print(1)", "resources": {"limits": {"memory": "900Gi"}}}, "NotAllowed", ["memory"]),
        (
            {"code": "print(1)", "network": {"egress": [{"cidr": "203.0.113.0/24"}]}},
            "NotAllowed",
            ["203.0.113.0/24"],
        ),
        ({"codeFrom": {"configMapKeyRef": {"name": "absent", "key": "k"}}}, "InputNotFound", ["absent"]),
        (
            {"code": "print(1)", "stdinFrom": {"configMapKeyRef": {"name": "absent", "key": "k"}}},
            "InputNotFound",
            ["absent"],
        ),
        (
            {
                "code": "print(1)",
                "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
            },
            "NotAllowed",
            ["env"],
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_input_ends_in_its_reason_without_a_pod(
    tenant: Tenant, spec: dict[str, Any], reason: str, words: list[str]
) -> None:
    status = tenant.run(**spec)
    assert status["reason"] == reason, status["message"]
    assert status["phase"] == "Failed"
    for word in words:
        assert word in status["message"]
    assert "run" not in status
    assert tenant.pods() == []


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({}, "code"),
        ({"code": ""}, "spec.code"),
        ({"code": "print(1)\x00"}, "control"),
        ({"code": "1", "codeFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}}, "codeFrom"),
        ({"code": "1", "env": [{"name": "LD_PRELOAD", "value": "x"}]}, "LD_"),
        ({"code": "1", "env": [{"name": "PYTHONPATH", "value": "x"}]}, "PYTHON"),
        ({"code": "1", "env": [{"name": "1A", "value": "x"}]}, "env"),
        ({"code": "1", "files": [{"path": "../up", "configMapKeyRef": {"name": "a", "key": "b"}}]}, "path"),
        ({"code": "1", "files": [{"path": "/etc/x", "configMapKeyRef": {"name": "a", "key": "b"}}]}, "path"),
        ({"code": "1", "retryPolicy": "Always"}, "retryPolicy"),
        ({"code": "1", "runTimeoutSeconds": -1}, "runTimeoutSeconds"),
        ({"code": "1", "args": ["x"] * 65}, "args"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_the_api_server_can_see_it_refuses(tenant: Tenant, spec: dict[str, Any], words: str) -> None:
    refused = tenant.create(task_manifest("refused", **spec), check=False)
    assert refused.returncode != 0
    assert words in refused.stderr
