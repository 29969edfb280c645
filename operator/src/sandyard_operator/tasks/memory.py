"""What this process remembers about one task between two looks. All of it may be lost at any time."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from sandyard_api.sandbox_class import SandboxClass
from sandyard_api.wire import Bundle
from sandyard_operator.decide.facts import AgentView, Refusal
from sandyard_operator.decide.inputs import Inputs
from sandyard_operator.decide.judge import Verdict
from sandyard_operator.decide.pod import PodView


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict and the very objects it was given on."""

    sandbox_class: SandboxClass | None
    labels: Mapping[str, str] | None
    inputs: Inputs | None
    verdict: Verdict

    def holds_for(
        self, sandbox_class: SandboxClass | None, labels: Mapping[str, str] | None, inputs: Inputs | None
    ) -> bool:
        """Tell whether nothing changed: identity is enough, for what is stored is never mutated."""
        return self.sandbox_class is sandbox_class and self.labels is labels and self.inputs is inputs


@dataclass(slots=True)
class TaskMemory:
    """One task's."""

    first_seen: datetime
    agents: dict[str, AgentView] = field(default_factory=dict)
    last_views: dict[str, PodView] = field(default_factory=dict)  # by pod uid, also of pods that went
    absent: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    attempt: int = 1
    created: PodView | None = None
    name_taken: bool = False
    refusal: Refusal | None = None
    unsure: bool = False
    faults: int = 0
    refused_write: str = ""
    labels: Mapping[str, str] | None = None
    inputs: Inputs | None = None
    admitted_class: SandboxClass | None = None
    bundle: Bundle | None = None
    judgement: Judgement | None = None

    def change(self, uid: str, now: datetime, **changes: Any) -> None:
        """Change what is known of one agent."""
        view = self.agents.get(uid) or AgentView(pod_uid=uid, seen_at=now)
        self.agents[uid] = replace(view, **changes)

    def next_attempt(self, after: int) -> None:
        """Give the pod of attempt ``after`` up."""
        self.attempt = max(self.attempt, after + 1)
        self.created = None
        self.name_taken = False
        self.refusal = None

    def drop_inputs(self) -> None:
        """Let go of what is not needed any more, or is read again when the task gets its place."""
        self.inputs = None
        self.bundle = None
        self.judgement = None
