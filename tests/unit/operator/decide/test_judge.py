"""Whether a task may run at all."""

from typing import Any

import pytest

from harness.simulation import START, make_class, make_task
from sandyard_api.sandbox_class import ClassStatus
from sandyard_api.task import SandboxTask
from sandyard_operator.decide.inputs import Reference, Source
from sandyard_operator.decide.judge import Accepted, NeedsInputs, NeedsNamespace, Rejected, Verdict, judge

CODE = Reference(Source.CONFIG_MAP, "c", "k")
SECRET = Reference(Source.SECRET, "s", "k")
SECRET_ENV = [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]
FROM_MAP = {"configMapKeyRef": {"name": "c", "key": "k"}}


def verdict(task: SandboxTask, inputs: dict[Reference, bytes | None] | None = None, **spec: Any) -> Verdict:
    return judge(task, make_class(**spec), labels=None, inputs=inputs)


def ended(found: Verdict) -> tuple[str, str]:
    assert isinstance(found, Rejected), found
    return found.end.reason, found.end.message


def block(*lines: str) -> str:
    return "\n".join(["# /// script", *(f"# {line}" for line in lines), "# ///", ""])


def test_a_plain_task_is_accepted() -> None:
    found = verdict(make_task())
    assert isinstance(found, Accepted)
    assert found.requirements == ()
    assert found.install_timeout_seconds == 180
    assert len(found.code_sha256) == 64


def test_a_missing_class_is_named() -> None:
    reason, message = ended(judge(make_task(), None, labels=None, inputs=None))
    assert reason == "ClassNotFound"
    assert "'default'" in message


@pytest.mark.parametrize(
    ("labels", "expected"), [(None, NeedsNamespace), ({"team": "a"}, Accepted), ({"team": "b"}, Rejected)]
)
def test_a_class_may_be_for_some_namespaces(labels: dict[str, str] | None, expected: type) -> None:
    sandbox_class = make_class(allowedNamespaces={"matchLabels": {"team": "a"}})
    assert isinstance(judge(make_task(), sandbox_class, labels=labels, inputs=None), expected)


@pytest.mark.parametrize(
    ("task", "spec", "reason", "words"),
    [
        ({"runTimeoutSeconds": 3601}, {}, "NotAllowed", "runTimeoutSeconds"),
        ({"installTimeoutSeconds": 901}, {}, "NotAllowed", "installTimeoutSeconds"),
        ({"resources": {"limits": {"memory": "900Gi"}}}, {}, "NotAllowed", "memory"),
        ({"resources": {"requests": {"cpu": "2"}}}, {}, "NotAllowed", "above the limit of 1"),
        ({"network": {"egress": [{"cidr": "203.0.113.0/24"}]}}, {}, "NotAllowed", "203.0.113.0/24"),
        ({"env": SECRET_ENV}, {}, "NotAllowed", "env"),
        ({"code": "x" * 101}, {"limits": {"codeBytes": 100}}, "LimitExceeded", "101 bytes; at most 100"),
        ({"stdin": "x" * 11}, {"limits": {"stdinBytes": 10}}, "LimitExceeded", "Standard input"),
        ({"env": [{"name": "A", "value": "x" * 32768}]}, {}, "LimitExceeded", "env"),
        ({"stdinFrom": {"blobRef": {"sha256": "a" * 64}}}, {}, "InputNotFound", "spec.stdinFrom"),
        (
            {"files": [{"path": "a", "blobRef": {"sha256": "a" * 64}}]},
            {},
            "InputNotFound",
            "spec.files[0]",
        ),
        ({"code": block("colour = 1")}, {}, "InvalidScript", "line 2"),
        ({"code": block("dependencies = ['a @ http://x']")}, {}, "InvalidDependency", "URL"),
        (
            {"code": block("dependencies = ['a', 'b']")},
            {"dependencies": {"maxItems": 1}},
            "LimitExceeded",
            "2 dependencies",
        ),
        ({"code": block("dependencies = ['a']")}, {"dependencies": {"deny": ["a"]}}, "InvalidDependency", "a"),
        ({"code": block("x = 1" * 9)}, {"limits": {"metadataBytes": 9}}, "LimitExceeded", "at most 9"),
        ({"sandboxRef": {"name": "sb"}}, {}, "SandboxNotFound", "'sb'"),
        ({"sandboxRef": {"name": "sb"}, "code": block()}, {}, "NotAllowed", "sandboxRef"),
    ],
)
def test_what_is_wrong_ends_in_its_reason(task: dict[str, Any], spec: dict[str, Any], reason: str, words: str) -> None:
    found_reason, message = ended(verdict(make_task(**task), **spec))
    assert found_reason == reason
    assert words in message
    assert "did not run" in message


@pytest.mark.parametrize(
    "task",
    [
        {"runTimeoutSeconds": 3600, "installTimeoutSeconds": 900},
        {"code": "x" * 100, "stdin": "y" * 10, "env": [{"name": "A", "value": "x" * 32767}]},
        {"resources": {"limits": {"memory": "100Mi"}}},
        {"network": {}},
    ],
)
def test_what_is_at_its_bound_is_accepted(task: dict[str, Any]) -> None:
    limits = {"codeBytes": 100, "stdinBytes": 10}
    assert isinstance(verdict(make_task(**task), limits=limits), Accepted)


def test_inputs_are_asked_for_after_all_that_needs_none() -> None:
    assert isinstance(verdict(make_task(codeFrom=FROM_MAP)), NeedsInputs)
    assert ended(verdict(make_task(codeFrom=FROM_MAP, runTimeoutSeconds=9999)))[0] == "NotAllowed"


@pytest.mark.parametrize(
    ("task", "inputs", "reason", "words"),
    [
        ({"codeFrom": FROM_MAP}, {CODE: None}, "InputNotFound", "key 'k' of ConfigMap 'c'"),
        ({"codeFrom": FROM_MAP}, {}, "InputNotFound", "spec.codeFrom"),
        ({"stdinFrom": FROM_MAP}, {CODE: None}, "InputNotFound", "spec.stdinFrom"),
        ({"files": [{"path": "a"} | FROM_MAP]}, {CODE: None}, "InputNotFound", "spec.files[0]"),
        ({"env": SECRET_ENV}, {SECRET: None}, "InputNotFound", "Secret 's'"),
        ({"env": SECRET_ENV}, {SECRET: b"\xff"}, "NotAllowed", "UTF-8"),
        ({"env": SECRET_ENV}, {SECRET: b"a\0b"}, "NotAllowed", "NUL"),
        ({"env": SECRET_ENV}, {SECRET: b"x" * 32768}, "LimitExceeded", "env"),
        ({"codeFrom": FROM_MAP}, {CODE: b"\xff\xfe"}, "InvalidScript", "UTF-8"),
        ({"codeFrom": FROM_MAP}, {CODE: b"x" * 262145}, "LimitExceeded", "262145 bytes"),
    ],
)
def test_what_is_read_is_judged_like_what_is_inline(
    task: dict[str, Any], inputs: dict[Reference, bytes | None], reason: str, words: str
) -> None:
    found_reason, message = ended(verdict(make_task(**task), inputs, allowSecretEnv=True))
    assert found_reason == reason
    assert words in message


def test_inputs_that_are_there_are_accepted() -> None:
    task = make_task(codeFrom=FROM_MAP, env=SECRET_ENV)
    found = verdict(task, {CODE: b"print(1)", SECRET: b"v"}, allowSecretEnv=True)
    assert isinstance(found, Accepted)


@pytest.mark.parametrize(
    ("told", "generation", "reason"),
    [("3.13.5", 1, "PythonVersionUnsatisfied"), ("3.13.5", 0, None), ("3.99.1", 1, None)],
)
def test_the_images_python_is_held_against_the_script_where_it_is_known(
    told: str, generation: int, reason: str | None
) -> None:
    sandbox_class = make_class().model_copy(update={"status": ClassStatus(python=told, observed_generation=generation)})
    task = make_task(code=block("requires-python = '>=3.99'"))
    found = judge(task, sandbox_class, labels=None, inputs=None)
    if reason is None:
        assert isinstance(found, Accepted)
        assert found.requires_python == ">=3.99"
    else:
        assert ended(found)[0] == reason


def test_ignored_tables_are_warned_of() -> None:
    found = verdict(make_task(code=block("[tool.uv]", "index-url = 'x'")))
    assert isinstance(found, Accepted)
    assert "tool.uv" in found.warnings[0]


def test_the_verdict_does_not_depend_on_when_it_is_given() -> None:
    assert verdict(make_task(created=START)) == verdict(make_task(created=START))
