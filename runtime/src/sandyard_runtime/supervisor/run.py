"""One run from PID 1's side: its pipes, its clock, its disk, its end, and the killing of what is left."""

import os
import selectors
import time
from collections.abc import Callable
from typing import Any, Final

from sandyard_runtime.supervisor.ending import Facts, report
from sandyard_runtime.supervisor.forks import Template, fork_run, open_gate
from sandyard_runtime.supervisor.link import Link, LinkLostError
from sandyard_runtime.supervisor.meters import DiskMeter, oom_kills
from sandyard_runtime.supervisor.reaper import end_all, kill_all
from sandyard_runtime.supervisor.streams import Drain, Feed, Pipes
from sandyard_runtime.worker.order import Order

TICK_SECONDS: Final = 0.25  # how often disk is measured
REPORT_BYTES: Final = 32 * 1024  # of the script's own account of its exception
WRITABLE: Final = ("/workspace", "/tmp", "/dev/shm")  # noqa: S108 - mounts of the runner's own
Move = Callable[[], bool]  # false when there is no more to move


class Run:
    """The one run of this pod."""

    def __init__(self, link: Link, order: Order, *, run_id: str) -> None:
        self._link = link
        self._run_id = run_id
        self._pipes = Pipes()
        self._stopped_for = ""
        self._said = bytearray()
        self._disk = DiskMeter(WRITABLE, limit=order.limits["diskBytes"])
        self._streams = {
            name: Drain(descriptor, cap=order.limits[f"{name}Bytes"], keep=self._keeper(name))
            for name, descriptor in (("stdout", self._pipes.stdout), ("stderr", self._pipes.stderr))
        }
        os.set_blocking(self._pipes.report, False)
        self._order = order

    def carry_out(self, chosen: Template, *, stdin: bytes, timeout: float) -> dict[str, Any]:
        """Start the run, see it to its end, kill what is left; return how it ended, or raise NotStartedError."""
        kills_before = oom_kills()
        pidfd, isolation = fork_run(chosen, self._order, self._pipes)
        self._tell({"type": "started", "isolation": isolation})
        started = time.monotonic()
        open_gate(self._pipes)
        self._watch(pidfd, Feed(self._pipes.stdin, stdin), deadline=started + timeout)
        found = os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOWAIT)
        milliseconds = round((time.monotonic() - started) * 1000)
        end_all()
        for stream in self._streams.values():
            stream.finish()
        self._hear()
        if found is None:  # only with WNOHANG
            raise ChildProcessError
        facts = Facts(
            code=found.si_code,
            status=found.si_status,
            stopped_for=self._stopped_for,
            out_of_memory=oom_kills() > kills_before,
            over_disk=self._disk.is_over_at_last(),
        )
        totals = {f"{name}Bytes": stream.total for name, stream in self._streams.items()}
        return report(facts, bytes(self._said)) | totals | {"runMilliseconds": milliseconds}

    def _watch(self, pidfd: int, feed: Feed, *, deadline: float) -> None:
        """Serve the pipes until the run's process has ended, by itself or by us."""
        next_tick = time.monotonic() + TICK_SECONDS
        with selectors.DefaultSelector() as selector:
            selector.register(pidfd, selectors.EVENT_READ)
            selector.register(self._link.connection, selectors.EVENT_READ)
            selector.register(self._pipes.report, selectors.EVENT_READ, self._hear)
            for stream in self._streams.values():
                selector.register(stream.descriptor, selectors.EVENT_READ, stream.move)
            selector.register(feed.descriptor, selectors.EVENT_WRITE, feed.move)
            while True:
                writing = selectors.EVENT_WRITE if self._link.wants_to_write else 0
                selector.modify(self._link.connection, selectors.EVENT_READ | writing)
                ready = selector.select(max(0.0, min(deadline, next_tick) - time.monotonic()))
                self._move(selector, [key for key, _ in ready if key.data], feed)
                self._exchange()
                if any(key.fd == pidfd for key, _ in ready):
                    break
                now = time.monotonic()
                if now >= next_tick:
                    next_tick = now + TICK_SECONDS
                    self._stop("disk", when=self._disk.is_over())
                self._stop("timeout", when=now >= deadline)
                if self._stopped_for:
                    kill_all()
        feed.finish()

    def _move(self, selector: selectors.BaseSelector, ready: list[selectors.SelectorKey], feed: Feed) -> None:
        """Let each ready pipe move its bytes; one at its end is not asked again."""
        for key in ready:
            move: Move = key.data
            if not move():
                selector.unregister(key.fileobj)
                if key.fd == feed.descriptor:
                    feed.finish()  # now the script reads its end

    def _exchange(self) -> None:
        """Serve the channel, which only a cancellation comes from while a script runs."""
        self._link.flush()
        self._link.receive()
        while (frame := self._link.next()) is not None:
            if frame.kind != "cancel":
                raise LinkLostError(f"a frame of type {frame.kind} during a run")
            self._stop("cancelled", when=True)

    def _stop(self, outcome: str, *, when: bool) -> None:
        """Decide to end the run; the first reason stands."""
        if when and not self._stopped_for:
            self._stopped_for = outcome

    def _hear(self) -> bool:
        """Take what the script says of its exception, bounded; false at the end."""
        try:
            data = os.read(self._pipes.report, REPORT_BYTES)
        except BlockingIOError:
            return True
        self._said += data[: REPORT_BYTES - len(self._said)]
        return bool(data)

    def _keeper(self, name: str) -> Callable[[bytes], None]:
        return lambda data: self._tell({"type": "output", "stream": name}, data)

    def _tell(self, header: dict[str, Any], payload: bytes = b"") -> None:
        self._link.send({**header, "runId": self._run_id}, payload)
