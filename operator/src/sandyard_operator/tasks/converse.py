"""The conversation with a pod's agent: the actions of a plan that go there, and what the answers mean.

Refusals that trying again does not change become facts of the pod's view; all else passes to the conductor.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Final, TypeAlias, assert_never

from sandyard_api.sandbox_class import Index, SandboxClass
from sandyard_api.task import SandboxTask
from sandyard_api.wire import (
    ErrorCode,
    IndexAccess,
    InstallPhase,
    InstallRequest,
    InstallStatus,
    ProbeRequest,
    RequirementsRequest,
    StartRequest,
)
from sandyard_operator.decide import plan as do
from sandyard_operator.decide.bundle import assemble
from sandyard_operator.decide.facts import AgentRefusal, AgentView
from sandyard_operator.decide.hear import heard_install, heard_run, unheard
from sandyard_operator.decide.index import address_of, probe_milliseconds
from sandyard_operator.decide.terms import disk_bytes
from sandyard_operator.ports import AgentRefusedError, Agents, AgentUnreachableError, Cluster, ConflictError
from sandyard_operator.tasks.memory import TaskMemory

AgentAction: TypeAlias = (
    do.StageBundle
    | do.AskRequirements
    | do.Install
    | do.ProveCut
    | do.StartRun
    | do.CancelRun
    | do.RevokeRun
    | do.Acknowledge
)
# Answers that say "not now" or "not you": nothing about the task follows from them.
PASSING: Final = frozenset({ErrorCode.NOT_READY, ErrorCode.UNAUTHENTICATED, ErrorCode.REPLAYED, ErrorCode.STALE_EPOCH})


def refused(
    memory: TaskMemory,
    uid: str,
    error: AgentRefusedError,
    *,
    now: datetime,
    action: AgentAction | None = None,
) -> bool:
    """Keep a refusal as a fact; False where it only asks for patience."""
    view = memory.agents.get(uid) or AgentView(pod_uid=uid, seen_at=now)
    # An agent was ready before a run is started: if it is not any more, it has lost its supervisor.
    supervisor_lost = error.code is ErrorCode.NOT_READY and isinstance(action, do.StartRun)
    if error.code in PASSING and not supervisor_lost:
        memory.agents[uid] = unheard(view, now)
        return False
    refusal = AgentRefusal(code=error.code, message=str(error))
    revoke_refused = view.revoke_refused or isinstance(action, do.RevokeRun)
    memory.agents[uid] = replace(view, refusal=refusal, revoke_refused=revoke_refused, unreachable_at=None)
    return True


class Conversation:
    """Talks to agents on behalf of tasks."""

    def __init__(  # noqa: PLR0913 - its doors and its clock
        self,
        *,
        agents: Agents,
        cluster: Cluster,
        operator_namespace: str,
        now: Callable[[], datetime],
        epoch: Callable[[], int | None],
        salt: Callable[[], str],
    ) -> None:
        self._agents = agents
        self._cluster = cluster
        self._operator_namespace = operator_namespace
        self._now = now
        self._epoch = epoch
        self._salt = salt

    async def carry_out(
        self, task: SandboxTask, sandbox_class: SandboxClass | None, memory: TaskMemory, action: AgentAction
    ) -> None:
        """Do one thing with an agent."""
        uid = action.pod.uid
        try:
            if isinstance(action, do.StageBundle | do.AskRequirements | do.Install | do.ProveCut):
                if sandbox_class is None:
                    raise ConflictError("the class went away meanwhile")
                view = await self._prepare(task, sandbox_class, memory, action)
            else:
                view = await self._run(memory, action)
        except AgentUnreachableError:
            memory.agents[uid] = unheard(self._view(memory, uid), self._now())
            raise
        except AgentRefusedError as error:
            if not refused(memory, uid, error, now=self._now(), action=action):
                raise
            return
        memory.agents[uid] = replace(view, unreachable_at=None)

    async def _prepare(
        self,
        task: SandboxTask,
        sandbox_class: SandboxClass,
        memory: TaskMemory,
        action: do.StageBundle | do.AskRequirements | do.Install | do.ProveCut,
    ) -> AgentView:
        pod, uid = action.pod, action.pod.uid
        match action:
            case do.StageBundle():
                if memory.bundle is None:
                    memory.bundle = assemble(task, sandbox_class, memory.inputs or {}, salt=self._salt())
                digest = await self._agents.send_bundle(pod, memory.bundle)
                if digest != memory.bundle.digest:
                    raise AgentRefusedError(ErrorCode.BAD_REQUEST, "it read other inputs than were sent")
                return replace(self._view(memory, uid), staged_digest=digest)
            case do.AskRequirements(requirements=requirements, requires_python=python):
                request = RequirementsRequest(requirements=requirements, requires_python=python)
                reply = await self._agents.requirements(pod, request)
                return replace(self._view(memory, uid), requirements=reply)
            case do.Install():
                status = await self._install(task, sandbox_class, action)
                return heard_install(self._view(memory, uid), status, self._now())
            case do.ProveCut():
                return await self._prove(sandbox_class, memory, action)
        assert_never(action)

    async def _install(self, task: SandboxTask, sandbox_class: SandboxClass, action: do.Install) -> InstallStatus:
        index = sandbox_class.spec.index
        if index is None:
            raise ConflictError("the class lost its index meanwhile")
        netrc = await self._netrc(index)
        if netrc is None:
            return InstallStatus(
                phase=InstallPhase.FAILED,
                reason="IndexAuthFailed",
                message="The Secret with the index's credentials is not in the operator's namespace.",
            )
        request = InstallRequest(
            requirements=action.requirements,
            index=IndexAccess(url=index.url, ca_bundle=index.ca_bundle, netrc=netrc),
            timeout_seconds=action.timeout_seconds,
            max_bytes=disk_bytes(task.spec, sandbox_class),
            require_hashes=sandbox_class.spec.dependencies.require_hashes,
        )
        return await self._agents.install(action.pod, request)

    async def _netrc(self, index: Index) -> str | None:
        ref = index.credentials_secret_ref
        if ref is None:
            return ""
        value = await self._cluster.secret_value(self._operator_namespace, ref.name, ref.key)
        return None if value is None else value.decode(errors="replace")

    async def _prove(self, sandbox_class: SandboxClass, memory: TaskMemory, action: do.ProveCut) -> AgentView:
        """Try the index from both sides; only "we can, the pod cannot" is a proof."""
        uid, index = action.pod.uid, sandbox_class.spec.index
        if index is None:
            raise ConflictError("the class lost its index meanwhile")
        host, port = address_of(index.url)
        began = self._now()
        address = await self._cluster.index_reachable(host, port)
        if not address:
            return replace(self._view(memory, uid), cut_failed_at=self._now())
        patience = probe_milliseconds(self._now() - began)
        request = ProbeRequest(host=address, port=port, timeout_milliseconds=patience)
        reply = await self._agents.probe(action.pod, request)
        view = self._view(memory, uid)
        if reply.connected or not reply.installer_gone:
            return replace(view, cut_proofs=0, cut_failed_at=self._now())
        return replace(view, cut_proofs=view.cut_proofs + 1, cut_failed_at=None)

    async def _run(
        self, memory: TaskMemory, action: do.StartRun | do.CancelRun | do.RevokeRun | do.Acknowledge
    ) -> AgentView:
        pod, uid = action.pod, action.pod.uid
        match action:
            case do.StartRun(run_id=run_id):
                epoch = self._epoch()
                if epoch is None:
                    raise ConflictError("the lease is over")
                request = StartRequest(
                    epoch=epoch,
                    input_digest=action.input_digest,
                    run_timeout_seconds=action.timeout_seconds,
                )
                status = await self._agents.start(pod, run_id, request)
            case do.CancelRun(run_id=run_id):
                status = await self._agents.cancel(pod, run_id)
                memory.agents[uid] = replace(self._view(memory, uid), cancel_at=self._now())
            case do.RevokeRun(run_id=run_id):
                status = await self._agents.revoke(pod, run_id)
            case do.Acknowledge(run_id=run_id):
                memory.agents[uid] = replace(self._view(memory, uid), acknowledged=True)
                status = await self._agents.acknowledge(pod, run_id)
            case _:
                assert_never(action)
        return heard_run(self._view(memory, uid), status, self._now())

    def _view(self, memory: TaskMemory, uid: str) -> AgentView:
        return memory.agents.get(uid) or AgentView(pod_uid=uid, seen_at=self._now())
