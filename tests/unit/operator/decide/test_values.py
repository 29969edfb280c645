"""The small pure parts: selectors, terms, bundles, what was learnt, what was heard."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from harness.facts import NOW, facts, later, pod, ready_status, run_status, view
from harness.simulation import START, make_class, make_task
from sandyard_api.names import NETWORK_INSTALLING
from sandyard_api.sandbox_class import ClassStatus
from sandyard_api.scheduling import LabelSelector
from sandyard_api.wire import InstallPhase, InstallStatus, Package, PartKind, RunPhase, SupervisorPhase
from sandyard_operator.decide import terms
from sandyard_operator.decide.bundle import assemble
from sandyard_operator.decide.hear import heard_install, heard_run, heard_status, seen, unheard
from sandyard_operator.decide.index import address_of, probe_milliseconds
from sandyard_operator.decide.inputs import Reference, Source, references
from sandyard_operator.decide.learn import class_status, is_known, known_python
from sandyard_operator.decide.select import selects

MAP = {"configMapKeyRef": {"name": "c", "key": "k"}}
C = Reference(Source.CONFIG_MAP, "c", "k")
S = Reference(Source.SECRET, "s", "k")


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({}, True),
        ({"matchLabels": {"a": "1"}}, True),
        ({"matchLabels": {"a": "2"}}, False),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1"]}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["2"]}]}, False),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, False),
        ({"matchExpressions": [{"key": "z", "operator": "NotIn", "values": ["1"]}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, False),
    ],
)
def test_selectors_match_as_in_kubernetes(selector: dict[str, Any], *, expected: bool) -> None:
    assert selects(LabelSelector.model_validate(selector), {"a": "1"}) is expected


def test_a_task_gets_its_own_amounts_then_its_classs() -> None:
    spec = make_task(resources={"limits": {"memory": "64Mi"}}).spec
    amounts = terms.amounts(spec, make_class())
    assert amounts.limits == {"cpu": "1", "memory": "64Mi", "ephemeral-storage": "1Gi"}
    assert amounts.requests == {"cpu": "100m", "memory": "64Mi"}


def test_a_request_of_its_own_stays_as_it_is() -> None:
    spec = make_task(resources={"requests": {"cpu": "900m"}}).spec
    assert terms.amounts(spec, make_class()).requests["cpu"] == "900m"


def test_disk_is_counted_in_bytes() -> None:
    assert terms.disk_bytes(make_task().spec, make_class()) == 1 << 30


@pytest.mark.parametrize(
    ("network", "expected"),
    [(None, False), ({}, False), ({"dns": True}, True), ({"egress": [{"cidr": "203.0.113.0/24"}]}, True)],
)
def test_egress_is_wanted_where_it_is_asked_for(network: Any, *, expected: bool) -> None:
    assert terms.wants_egress(make_task(network=network).spec) is expected


def test_times_are_the_tasks_then_the_classs_then_the_defaults() -> None:
    own = make_task(runTimeoutSeconds=5, installTimeoutSeconds=6).spec
    assert (terms.run_seconds(own, None), terms.install_seconds(own, None)) == (5, 6)
    assert terms.run_seconds(make_task().spec, make_class(timeouts={"runSeconds": 9})) == 9
    assert terms.install_seconds(make_task().spec, None) == 180


def test_places_are_the_classs_then_the_defaults() -> None:
    assert facts(sandbox_class=make_class(queue={"maxRunning": 2})).queue.max_running == 2
    assert facts(sandbox_class=None).queue.max_running == 4


def test_a_bundle_holds_all_that_a_run_gets() -> None:
    task = make_task(
        codeFrom=MAP,
        stdinFrom=MAP,
        files=[{"path": "a/b", **MAP}],
        args=["x"],
        env=[
            {"name": "A", "value": "1"},
            {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        ],
    )
    bundle = assemble(task, make_class(), {C: b"print(1)", S: b"hush"}, salt="s")
    assert [(p.kind, p.path, p.bytes) for p in bundle.manifest.parts] == [
        (PartKind.CODE, "", 8),
        (PartKind.STDIN, "", 8),
        (PartKind.FILE, "a/b", 8),
    ]
    assert [(v.name, v.value, v.secret) for v in bundle.manifest.env] == [
        ("A", "1", False),
        ("B", "hush", True),
    ]
    assert bundle.manifest.args == ("x",)
    assert bundle.manifest.limits.disk_bytes == 1 << 30
    assert bundle.manifest.egress is False


def test_a_plain_bundle_has_code_and_an_empty_stdin() -> None:
    bundle = assemble(make_task(), make_class(), {}, salt="s")
    assert bundle.blobs == (b"print(1)\n", b"")


def test_a_blob_is_left_to_whoever_serves_blobs() -> None:
    task = make_task(files=[{"path": "a", "blobRef": {"sha256": "a" * 64}}])
    assert len(assemble(task, make_class(), {}, salt="s").blobs) == 2
    assert references(task.spec) == {}


def test_the_salt_keeps_equal_inputs_apart() -> None:
    digests = {assemble(make_task(), make_class(), {}, salt=salt).digest for salt in ("a", "b", "a")}
    assert len(digests) == 2


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("http://index.test/simple/", ("index.test", 80)),
        ("https://index.test/simple/", ("index.test", 443)),
        ("http://index.test:8080/", ("index.test", 8080)),
        ("ftp://[2001:db8::1]/", ("2001:db8::1", 443)),
        ("/nowhere", ("", 443)),
    ],
)
def test_an_index_listens_where_its_url_says(url: str, address: tuple[str, int]) -> None:
    assert address_of(url) == address


@pytest.mark.parametrize(("control", "patience"), [(0.0, 100), (0.02, 400), (3.0, 2000)])
def test_a_pods_connect_is_given_what_the_operators_took_times_twenty(control: float, patience: int) -> None:
    assert probe_milliseconds(timedelta(seconds=control)) == patience


def test_what_an_image_holds_is_learnt_from_its_first_agent() -> None:
    sandbox_class = make_class()
    assert not is_known(sandbox_class)
    assert known_python(sandbox_class) == ""
    told = ready_status(packages=(Package(name="numpy", version="2"),))
    status = class_status(sandbox_class, told, NOW)
    learnt = sandbox_class.model_copy(update={"status": ClassStatus.model_validate(status)})
    assert is_known(learnt)
    assert known_python(learnt) == "3.13.5"
    assert status["packages"] == [{"name": "numpy", "version": "2"}]
    again = class_status(learnt, told, later(9))
    assert again["conditions"] == status["conditions"]


def test_a_class_that_changed_is_not_known_any_more() -> None:
    old = ClassStatus(observed_generation=0, python="3.12.1")
    changed = make_class().model_copy(update={"status": old})
    assert not is_known(changed)
    assert known_python(changed) == ""


FRESH = view(status=None, ready_at=None)


def test_an_agents_status_tells_everything_at_once() -> None:
    status = ready_status(install=InstallStatus(phase=InstallPhase.RUNNING), run=run_status())
    heard = heard_status(replace(FRESH, unreachable_at=START), status, NOW)
    assert heard.ready
    assert heard.ready_at == NOW
    assert heard.unreachable_at is None
    assert heard.install_at == NOW
    assert heard.run == run_status()


def test_an_agent_whose_supervisor_starts_is_not_ready() -> None:
    heard = heard_status(FRESH, ready_status(supervisor=SupervisorPhase.STARTING), NOW)
    assert not heard.ready
    assert heard.ready_at is None
    assert not FRESH.ready


def test_moments_are_kept_from_the_first_time() -> None:
    first = heard_run(FRESH, run_status(RunPhase.FINISHED), NOW)
    assert heard_run(first, run_status(RunPhase.FINISHED), later(5)).ended_at == NOW
    assert heard_run(FRESH, run_status(), NOW).ended_at is None
    assert unheard(unheard(FRESH, NOW), later(5)).unreachable_at == NOW
    installing = heard_install(FRESH, InstallStatus(phase=InstallPhase.RUNNING), NOW)
    assert heard_install(installing, InstallStatus(phase=InstallPhase.SUCCEEDED), later(5)).install_at == NOW
    assert heard_status(heard_status(FRESH, ready_status(), NOW), ready_status(), later(5)).ready_at == NOW


def test_a_pod_is_closed_since_it_was_first_seen_so_after_its_install() -> None:
    done = heard_install(FRESH, InstallStatus(phase=InstallPhase.SUCCEEDED), NOW)
    assert seen(FRESH, pod(), NOW).closed_at is None
    assert seen(done, pod(network=NETWORK_INSTALLING), NOW).closed_at is None
    closed = seen(done, pod(), NOW)
    assert closed.closed_at == NOW
    assert seen(closed, pod(), later(5)).closed_at == NOW
