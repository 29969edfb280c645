"""Metrics for Prometheus. Every label comes from a closed set: reasons, phases, actions, kinds, classes of errors.

Counters and histograms are told what happens; gauges are asked when somebody scrapes. One registry per process,
none of the library's global ones.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from sandyard_api.reasons import Reason, TaskPhase
from sandyard_api.task import SandboxTask

LATENCIES: Final = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
DURATIONS: Final = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180, 600, 1800, 3600)
PARTS: Final = ("queue", "start", "install", "run", "total")
OTHER: Final = "Other"
REASONS: Final = frozenset(Reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauges:
    """What is true at the moment of a scrape."""

    tasks: Mapping[TaskPhase, int]
    pods: int
    queue_keys: int
    queue_oldest_seconds: float
    waits: int
    leader: bool
    epoch: int
    loop_lag_seconds: float
    sweep_overdue_seconds: float


class _Scrape(Collector):
    def __init__(self, gauges: Callable[[], Gauges]) -> None:
        self._gauges = gauges

    def collect(self) -> Iterator[Metric]:
        now = self._gauges()
        tasks = GaugeMetricFamily("sandyard_tasks", "Tasks known, by phase.", labels=["phase"])
        for phase in TaskPhase:
            tasks.add_metric([phase], now.tasks.get(phase, 0))
        yield tasks
        for name, text, value in (
            ("pods", "Pods of ours known.", now.pods),
            ("queue_keys", "Tasks waiting to be looked at.", now.queue_keys),
            ("queue_oldest_seconds", "How long the first of them waits.", now.queue_oldest_seconds),
            ("waits", "Agents listened to.", now.waits),
            ("leader", "1 where this process acts.", float(now.leader)),
            ("epoch", "Epoch it acts under; 0: none.", now.epoch),
            ("loop_lag_seconds", "By how much the event loop is late.", now.loop_lag_seconds),
            ("sweep_overdue_seconds", "By how much the full list is late.", now.sweep_overdue_seconds),
        ):
            yield GaugeMetricFamily(f"sandyard_{name}", text, value=value)


class Metrics:
    """The ``Recorder`` of the core, and the observer of both clients."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self._finished = Counter("sandyard_tasks_finished", "Tasks that ended.", ["reason"], registry=registry)
        self._parts = Histogram(
            "sandyard_task_seconds",
            "How long the parts of finished tasks took.",
            ["part"],
            buckets=DURATIONS,
            registry=registry,
        )
        self._actions = Counter(
            "sandyard_actions",
            "Actions carried out; error is empty on success.",
            ["action", "error"],
            registry=registry,
        )
        self._action_seconds = Histogram(
            "sandyard_action_seconds", "How long actions took.", ["action"], buckets=LATENCIES, registry=registry
        )
        self._api = Counter(
            "sandyard_api_requests",
            "Requests to the API server; error is empty on success.",
            ["verb", "resource", "error"],
            registry=registry,
        )
        self._api_seconds = Histogram(
            "sandyard_api_request_seconds", "How long they took.", ["verb"], buckets=LATENCIES, registry=registry
        )
        self._agents = Counter(
            "sandyard_agent_requests",
            "Requests to agents; error is empty on success.",
            ["call", "error"],
            registry=registry,
        )
        self._events_dropped = Counter(
            "sandyard_events_dropped", "Events not written: too many, or refused.", registry=registry
        )

    def watch(self, gauges: Callable[[], Gauges]) -> None:
        """Ask for the gauges at each scrape from now on."""
        self.registry.register(_Scrape(gauges))

    def acted(self, action: str, *, seconds: float, error: str) -> None:
        """Count one action of a plan by its kind; ``error`` is the class of the PortError, empty if none."""
        self._actions.labels(action, error).inc()
        self._action_seconds.labels(action).observe(seconds)

    def finished(self, task: SandboxTask) -> None:
        """Count the end of a task, with its status as written."""
        status = task.status
        if status is None:
            return
        self._finished.labels(status.reason if status.reason in REASONS else OTHER).inc()
        if status.timings is not None:
            taken = status.timings
            for part, milliseconds in zip(
                PARTS,
                (
                    taken.queue_milliseconds,
                    taken.start_milliseconds,
                    taken.install_milliseconds,
                    taken.run_milliseconds,
                    taken.total_milliseconds,
                ),
                strict=True,
            ):
                if milliseconds is not None:
                    self._parts.labels(part).observe(milliseconds / 1000)

    def asked_api(self, verb: str, resource: str, error: str, seconds: float) -> None:
        """Count a request to the API server."""
        self._api.labels(verb, resource, error).inc()
        self._api_seconds.labels(verb).observe(seconds)

    def asked_agent(self, call: str, error: str) -> None:
        """Count a request to an agent."""
        self._agents.labels(call, error).inc()

    def event_dropped(self) -> None:
        """Count an Event that was not written."""
        self._events_dropped.inc()

    def render(self) -> bytes:
        """Return all of it in Prometheus' text format."""
        return generate_latest(self.registry)
