"""Metrics: counted where they belong, with labels from closed sets."""

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from harness.simulation import make_task
from sandyard_api.reasons import TaskPhase
from sandyard_api.task_status import TaskStatus
from sandyard_operator.telemetry.metrics import Gauges, Metrics
from sandyard_operator.telemetry.server import MetricsServer

HOST = "127.0.0.1"
GAUGES = Gauges(
    tasks={TaskPhase.RUNNING: 3},
    pods=4,
    queue_keys=1,
    queue_oldest_seconds=0.5,
    waits=2,
    leader=True,
    epoch=7,
    loop_lag_seconds=0.0,
    sweep_overdue_seconds=0.0,
)


def samples(metrics: Metrics) -> dict[tuple[str, tuple[str, ...]], float]:
    """Return each sample by its name and the values of its labels, in the order of the labels' names."""
    families = text_string_to_metric_families(metrics.render().decode())
    return {
        (s.name, tuple(s.labels[name] for name in sorted(s.labels))): s.value
        for family in families
        for s in family.samples
    }


def test_end_of_a_task_is_counted_by_reason_and_parts() -> None:
    metrics = Metrics()
    status = {
        "phase": "Succeeded",
        "reason": "Succeeded",
        "timings": {"runMilliseconds": 1500, "totalMilliseconds": 2000},
    }
    metrics.finished(make_task().model_copy(update={"status": TaskStatus.model_validate(status)}))
    found = samples(metrics)
    assert found["sandyard_tasks_finished_total", ("Succeeded",)] == 1
    assert found["sandyard_task_seconds_sum", ("run",)] == 1.5
    assert ("sandyard_task_seconds_sum", ("install",)) not in found


def test_odd_reason_becomes_no_label() -> None:
    metrics = Metrics()
    status = TaskStatus.model_validate({"phase": "Failed", "reason": "Whatever"})
    metrics.finished(make_task().model_copy(update={"status": status}))
    metrics.finished(make_task())
    assert samples(metrics)["sandyard_tasks_finished_total", ("Other",)] == 1


def test_requests_and_actions_are_counted() -> None:
    metrics = Metrics()
    metrics.acted("CreatePod", seconds=0.2, error="UnsureError")
    metrics.asked_api("PATCH", "pods", "", 0.004)
    metrics.asked_agent("GET status", "AgentUnreachableError")
    metrics.event_dropped()
    found = samples(metrics)
    assert found["sandyard_actions_total", ("CreatePod", "UnsureError")] == 1
    assert found["sandyard_action_seconds_count", ("CreatePod",)] == 1
    assert found["sandyard_api_requests_total", ("", "pods", "PATCH")] == 1
    assert found["sandyard_agent_requests_total", ("GET status", "AgentUnreachableError")] == 1
    assert found["sandyard_events_dropped_total", ()] == 1


async def test_gauges_are_asked_at_the_scrape() -> None:
    metrics = Metrics()
    metrics.watch(lambda: GAUGES)
    server = MetricsServer(port=0, host=HOST, render=metrics.render)
    async with (
        server,
        aiohttp.ClientSession() as session,
        session.get(f"http://{HOST}:{server.port}/metrics") as answer,
    ):
        text = await answer.text()
    assert 'sandyard_tasks{phase="Running"} 3.0' in text
    assert 'sandyard_tasks{phase="Queued"} 0.0' in text
    assert "sandyard_leader 1.0" in text
    assert "sandyard_epoch 7.0" in text
