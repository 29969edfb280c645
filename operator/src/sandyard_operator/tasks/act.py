"""One action at a time, through the ports: what a plan asks for is done, and what was answered is remembered.

Own writes go into the caches at once. Errors of the ports pass through to the conductor, but for those that
are themselves facts for the next decision. Talking to a pod's agent is in ``converse``.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias, assert_never

from sandyard_api.sandbox_class import SandboxClass
from sandyard_api.task import SandboxTask
from sandyard_operator.decide import plan as do
from sandyard_operator.decide.facts import Refusal
from sandyard_operator.decide.inputs import Reference, Source, references
from sandyard_operator.decide.learn import class_status
from sandyard_operator.decide.plan import StatusStep
from sandyard_operator.decide.pod import PodView, RefusalKind, pod_name
from sandyard_operator.ports import (
    AlreadyExistsError,
    Cluster,
    ConflictError,
    ForbiddenError,
    Key,
    NotFoundError,
    PortError,
    RefusedError,
    UnsureError,
)
from sandyard_operator.tasks.converse import Conversation
from sandyard_operator.tasks.memory import TaskMemory
from sandyard_operator.tasks.world import World

Read: TypeAlias = do.ReadTask | do.ReadPod | do.ReadNamespace | do.ReadInputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What an action is about: the task as it was decided on, its class, and what is remembered of it."""

    key: Key
    task: SandboxTask
    sandbox_class: SandboxClass | None
    memory: TaskMemory


class Actor:
    """Carries out actions."""

    def __init__(
        self, *, cluster: Cluster, conversation: Conversation, world: World, now: Callable[[], datetime]
    ) -> None:
        self._cluster = cluster
        self._conversation = conversation
        self._world = world
        self._now = now

    async def carry_out(self, subject: Subject, action: do.Action) -> None:  # noqa: C901 - one case per action
        """Do one thing; raises PortError where it could not be done."""
        match action:
            case do.ReadTask() | do.ReadPod() | do.ReadNamespace() | do.ReadInputs():
                await self._read(subject, action)
            case do.WriteStatus(step=step, status=status):
                await self._write_status(subject, step, status)
            case do.Emit(reason=reason, message=message, warning=warning):
                await self._cluster.emit(subject.task, reason=reason, message=message, warning=warning)
            case do.CreatePod(attempt=attempt):
                await self._create_pod(subject, attempt)
            case do.NextAttempt(after=after):
                subject.memory.next_attempt(after)
            case do.SetNetwork(pod=pod, network=network):
                self._world.pods.store(await self._cluster.set_network(pod, network))
            case do.CheckPolicies(pod=pod):
                await self._check_policies(subject, pod)
            case do.DeletePod(pod=pod):
                await self._cluster.delete_pod(pod)
                subject.memory.deleted.add(pod.uid)
            case do.DeleteTask():
                await self._delete_task(subject)
            case do.LearnImage(pod=pod):
                await self._learn_image(subject, pod)
            case (
                do.StageBundle()
                | do.AskRequirements()
                | do.Install()
                | do.ProveCut()
                | do.StartRun()
                | do.CancelRun()
                | do.RevokeRun()
                | do.Acknowledge()
            ):
                await self._conversation.carry_out(subject.task, subject.sandbox_class, subject.memory, action)
            case _:
                assert_never(action)

    async def refresh(self, key: Key) -> None:
        """Read task and pods from the API server itself, after it disagreed with what was known."""
        await self.read_task(key)
        for pod in self._world.pods_of(key.uid):
            await self._read_pod(key, pod.name, pod.uid)

    async def read_task(self, key: Key) -> SandboxTask | None:
        """Read a task from the API server itself; None where this incarnation is gone."""
        task = await self._cluster.get_task(key.namespace, key.name)
        if task is None or task.metadata.uid != key.uid:
            self._world.tasks.remove((key.namespace, key.name), key.uid)
            task = None
        else:
            self._world.tasks.store(task)
        return task

    async def _read(self, subject: Subject, action: Read) -> None:
        key, memory = subject.key, subject.memory
        match action:
            case do.ReadTask():
                await self.read_task(key)
                memory.unsure = False
            case do.ReadPod(name=name, uid=uid):
                if not await self._read_pod(key, name, uid):
                    memory.absent.add(uid)
            case do.ReadNamespace():
                memory.labels = await self._cluster.namespace_labels(key.namespace)
            case do.ReadInputs():
                wanted = references(subject.task.spec).values()
                memory.inputs = {ref: await self._read_value(key.namespace, ref) for ref in set(wanted)}
            case _:
                assert_never(action)

    async def _read_pod(self, key: Key, name: str, uid: str) -> bool:
        pod = await self._cluster.get_pod(key.namespace, name)
        if pod is None or pod.uid != uid:
            self._world.pods.remove((key.namespace, name), uid)
            return False
        return self._world.pods.store(pod)

    async def _read_value(self, namespace: str, ref: Reference) -> bytes | None:
        try:
            if ref.source is Source.SECRET:
                return await self._cluster.secret_value(namespace, ref.name, ref.key)
            return await self._cluster.config_map_value(namespace, ref.name, ref.key)
        except ForbiddenError:  # without operator.allowSecretEnv no Secret may be read
            return None

    async def _write_status(self, subject: Subject, step: StatusStep, status: Mapping[str, Any]) -> None:
        memory = subject.memory
        try:
            stored = await self._cluster.write_task_status(subject.task, status)
        except UnsureError:
            memory.unsure = True
            raise
        except RefusedError as error:
            if step is not StatusStep.FINAL or memory.refused_write:
                raise
            memory.refused_write = str(error)
            return
        self._world.tasks.store(stored)
        if step is StatusStep.ADMITTED:
            memory.admitted_class = subject.sandbox_class
        elif step is StatusStep.CLAIM:
            memory.drop_inputs()

    async def _create_pod(self, subject: Subject, attempt: int) -> None:
        task, memory = subject.task, subject.memory
        if subject.sandbox_class is None:
            raise ConflictError("the class went away meanwhile")
        namespace = task.metadata.namespace
        try:
            await self._cluster.prepare_namespace(namespace, subject.sandbox_class)
            pod = await self._cluster.create_pod(task, subject.sandbox_class, attempt=attempt)
        except AlreadyExistsError:
            found = await self._cluster.get_pod(namespace, pod_name(task.metadata.uid, attempt))
            if found is None:
                raise ConflictError("the pod of that name is gone again") from None
            if not (found.signed and found.owner_uid == task.metadata.uid and found.attempt == attempt):
                memory.name_taken = True
                return
            pod = found
        except RefusedError as error:
            memory.refusal = Refusal(kind=error.kind, message=str(error), at=self._now())
            return
        except NotFoundError:
            message = "the namespace is gone"
            memory.refusal = Refusal(kind=RefusalKind.NAMESPACE_ENDING, message=message, at=self._now())
            return
        memory.created = pod
        memory.refusal = None
        memory.last_views[pod.uid] = pod
        if not self._world.pods.store(pod):
            memory.absent.add(pod.uid)  # its deletion was seen before the answer to its creation

    async def _check_policies(self, subject: Subject, pod: PodView) -> None:
        found = await self._cluster.foreign_policies(pod)
        subject.memory.change(pod.uid, self._now(), foreign_policies=tuple(p.name for p in found))

    async def _delete_task(self, subject: Subject) -> None:
        await self._cluster.delete_task(subject.task)
        key = subject.key
        self._world.tasks.remove((key.namespace, key.name), key.uid)

    async def _learn_image(self, subject: Subject, pod: PodView) -> None:
        """Nothing hangs on it: a failed write is tried again a minute later."""
        view = subject.memory.agents.get(pod.uid)
        sandbox_class = subject.sandbox_class
        if view is None or view.status is None or sandbox_class is None:
            return
        self._world.learned[(sandbox_class.metadata.uid, sandbox_class.metadata.generation)] = self._now()
        with suppress(PortError):
            await self._cluster.write_class_status(sandbox_class, class_status(sandbox_class, view.status, self._now()))
