"""One run from PID 1's side: its pipes, its clock, its disk, its end, and the killing of what is left."""

import json
import os
import selectors
import signal
import time
from dataclasses import dataclass
from typing import Any, Final

from sandyard_runtime.supervisor.forks import Template, fork_run
from sandyard_runtime.supervisor.link import Link
from sandyard_runtime.supervisor.meters import DiskMeter, oom_kills
from sandyard_runtime.supervisor.streams import Drain, Feed
from sandyard_runtime.worker.template import Order

TICK_SECONDS: Final = 0.25  # how often disk is measured
REPORT_BYTES: Final = 32 * 1024  # of the script's own account of its exception
WRITABLE: Final = ("/workspace", "/tmp", "/dev/shm")  # noqa: S108 - mounts of the runner's own


@dataclass(slots=True)
class Stop:
    """Why we ended a run; empty when it ended by itself."""

    outcome: str = ""


class Run:
    """The one run of this pod."""

    def __init__(self, link: Link, order: Order, *, stdin: bytes, timeout: float) -> None:
        self._link = link
        self._order = order
        self._stdin = stdin
        self._timeout = timeout
        self._stop = Stop()
        self._report = bytearray()
        self._disk = DiskMeter(WRITABLE)

    def carry_out(self, chosen: Template) -> None:
        """Start the run, see it to its end, kill what is left, report."""
        limits = self._order.limits
        stdin_reader, stdin_writer = os.pipe()
        stdout_reader, stdout_writer = os.pipe()
        stderr_reader, stderr_writer = os.pipe()
        report_reader, report_writer = os.pipe()
        go_reader, go_writer = os.pipe()
        theirs = [stdin_reader, stdout_writer, stderr_writer, report_writer, go_reader]
        kills_before = oom_kills()
        try:
            pid = fork_run(chosen, self._order, theirs)
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        pidfd = os.pidfd_open(pid)
        drains = {
            name: Drain(reader, cap=limits[f"{name}Bytes"], keep=self._keeper(name))
            for name, reader in (("stdout", stdout_reader), ("stderr", stderr_reader))
        }
        self._link.send({"type": "started", "isolation": self._isolation(chosen)})
        started = time.monotonic()
        os.write(go_writer, b"g")
        os.close(go_writer)
        feed = Feed(stdin_writer, self._stdin)
        self._watch(pidfd, drains, feed, report_reader, deadline=started + self._timeout)
        status = os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOWAIT)
        milliseconds = round((time.monotonic() - started) * 1000)
        feed.close()
        kill_everything()
        os.close(pidfd)
        for drain in drains.values():
            drain.drain()
            drain.close()
        self._read_report(report_reader)
        os.close(report_reader)
        self._disk.finish()
        if status is None:
            raise OSError("the run's status is gone")
        self._link.send(
            {
                "type": "exited",
                **self._ending(status.si_code, status.si_status, oom=oom_kills() > kills_before),
                "stdoutBytes": drains["stdout"].total,
                "stderrBytes": drains["stderr"].total,
                "runMilliseconds": milliseconds,
            }
        )

    def _watch(self, pidfd: int, drains: dict[str, Drain], feed: Feed, report: int, *, deadline: float) -> None:
        """Serve the pipes until the run's process has ended, by itself or by us."""
        os.set_blocking(report, False)
        next_tick = time.monotonic() + TICK_SECONDS
        with selectors.DefaultSelector() as selector:
            selector.register(pidfd, selectors.EVENT_READ)
            selector.register(self._link.connection, selectors.EVENT_READ)
            selector.register(report, selectors.EVENT_READ, lambda: self._read_report(report))
            for drain in drains.values():
                selector.register(drain.descriptor, selectors.EVENT_READ, drain.read)
            if feed.open:
                selector.register(feed.descriptor, selectors.EVENT_WRITE, feed.write)
            while True:
                writing = selectors.EVENT_WRITE if self._link.wants_to_write else 0
                selector.modify(self._link.connection, selectors.EVENT_READ | writing)
                ready = selector.select(max(0.0, min(deadline, next_tick) - time.monotonic()))
                self._serve(selector, {key for key, _ in ready}, feed)
                if any(key.fileobj == pidfd for key, _ in ready):
                    return
                now = time.monotonic()
                if now >= next_tick:
                    next_tick = now + TICK_SECONDS
                    self._measure()
                if now >= deadline:
                    self._stop.outcome = self._stop.outcome or "timeout"
                if self._stop.outcome:
                    kill_others()

    def _serve(self, selector: selectors.BaseSelector, ready: set[selectors.SelectorKey], feed: Feed) -> None:
        """Let each ready pipe move its bytes, then the channel; a pipe at its end is not asked again."""
        for key in ready:
            if key.data is not None and not key.data():
                selector.unregister(key.fileobj)
                if key.fd == feed.descriptor:
                    feed.close()  # the script reads its end
            if key.fileobj is self._link.connection:
                self._link.flush()
                self._obey()

    def _obey(self) -> None:
        for frame in self._link.receive():
            if frame.kind == "cancel":
                self._stop.outcome = self._stop.outcome or "cancelled"

    def _measure(self) -> None:
        self._disk.step()
        if self._disk.used > self._order.limits["diskBytes"]:
            self._stop.outcome = self._stop.outcome or "disk"

    def _keeper(self, name: str) -> Any:
        return lambda data: self._link.send({"type": "output", "stream": name}, data)

    def _read_report(self, descriptor: int) -> bool:
        """Take what the script says of its exception, bounded; false at the end."""
        try:
            data = os.read(descriptor, REPORT_BYTES)
        except BlockingIOError:
            return True
        self._report += data[: REPORT_BYTES - len(self._report)]
        return bool(data)

    def _isolation(self, chosen: Template) -> dict[str, Any]:
        return {**chosen.isolation, "network": "Egress" if self._order.egress else "None"}

    def _ending(self, code: int, status: int, *, oom: bool) -> dict[str, Any]:
        """Turn the kernel's word, and the script's own, into a report."""
        said = self._said()
        signalled = code in {os.CLD_KILLED, os.CLD_DUMPED}
        ending: dict[str, Any] = {"exitCode": None if signalled else status}
        if signalled:
            ending["signal"] = signal_name(status)
        if "lockdown" in said:
            return {**ending, "outcome": "isolationUnavailable", "message": str(said["lockdown"])[:1000]}
        if self._disk.used > self._order.limits["diskBytes"]:
            self._stop.outcome = self._stop.outcome or "disk"
        if self._stop.outcome:
            outcome = self._stop.outcome
        elif signalled:
            outcome = "oom" if oom and status == signal.SIGKILL else "signaled"
        else:
            outcome = "exited"
            ending |= {key: str(said.get(key, "")) for key in ("errorType", "errorMessage", "traceback")}
            ending["errorType"] = ending["errorType"][:200]
        return {**ending, "outcome": outcome}

    def _said(self) -> dict[str, Any]:
        try:
            said = json.loads(self._report or b"{}")
        except ValueError:
            return {}
        return said if isinstance(said, dict) else {}


def signal_name(number: int) -> str:
    """Return SIGKILL for 9, and so on."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def kill_others() -> None:
    """Send SIGKILL to every process but PID 1."""
    try:
        os.kill(-1, signal.SIGKILL)
    except ProcessLookupError:
        return


def kill_everything() -> None:
    """Kill and reap until no child is left, whatever forks meanwhile."""
    while True:
        kill_others()
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        except ChildProcessError:
            return
