"""What is known about one task, put together for a decision from the caches and from memory."""

from datetime import datetime, timedelta
from typing import Final

from sandyard_api.sandbox_class import SandboxClass
from sandyard_api.task import SandboxTask
from sandyard_operator.decide.facts import AgentView, Observed
from sandyard_operator.decide.hear import seen
from sandyard_operator.decide.judge import Verdict, judge
from sandyard_operator.decide.learn import is_known
from sandyard_operator.decide.standing import Standing, standing_of
from sandyard_operator.tasks.memory import Judgement, TaskMemory
from sandyard_operator.tasks.world import World

LEARN_AGAIN: Final = timedelta(seconds=60)  # after a write of a class's status that failed


def observe(world: World, task: SandboxTask, memory: TaskMemory, now: datetime) -> Observed:
    """Put the facts together; memory takes note of pods it sees for the first time."""
    uid = task.metadata.uid
    sandbox_class = memory.admitted_class or world.classes.get(task.spec.sandbox_class_name)
    pods = world.pods_of(uid)
    for pod in pods:
        view = memory.agents.get(pod.uid) or AgentView(pod_uid=pod.uid, seen_at=now)
        memory.agents[pod.uid] = seen(view, pod, now)
        memory.last_views[pod.uid] = pod
        memory.attempt = max(memory.attempt, pod.attempt)
    return Observed(
        task=task,
        sandbox_class=sandbox_class,
        verdict=_verdict(task, sandbox_class, memory),
        place=world.places.of(task),
        first_seen=memory.first_seen,
        pods=pods,
        agents=memory.agents,
        attempt=memory.attempt,
        created=memory.created,
        name_taken=memory.name_taken,
        refusal=memory.refusal,
        last_views=memory.last_views,
        absent=frozenset(memory.absent),
        deleted=frozenset(memory.deleted),
        bundle_digest="" if memory.bundle is None else memory.bundle.digest,
        image_unknown=_image_unknown(world, sandbox_class, now),
        unsure=memory.unsure,
        faults=memory.faults,
        refused_write=memory.refused_write,
    )


def _verdict(task: SandboxTask, sandbox_class: SandboxClass | None, memory: TaskMemory) -> Verdict | None:
    if standing_of(task) is Standing.FINISHED or (task.status is not None and task.status.run is not None):
        return None
    judgement = memory.judgement
    if judgement is None or not judgement.holds_for(sandbox_class, memory.labels, memory.inputs):
        verdict = judge(task, sandbox_class, labels=memory.labels, inputs=memory.inputs)
        judgement = Judgement(sandbox_class, memory.labels, memory.inputs, verdict)
        memory.judgement = judgement
    return judgement.verdict


def _image_unknown(world: World, sandbox_class: SandboxClass | None, now: datetime) -> bool:
    if sandbox_class is None or is_known(world.classes.get(sandbox_class.metadata.name) or sandbox_class):
        return False
    tried = world.learned.get((sandbox_class.metadata.uid, sandbox_class.metadata.generation))
    return tried is None or now >= tried + LEARN_AGAIN
