"""An operator that stands still for longer than its Lease, and then goes on where it stood, does nothing twice.

One after another each leader is stopped right before a write of its own task, another takes over after the Lease's
fifteen seconds, and at the end all go on at once: each sends the write it was about to send, a minute late for the
first. A status is refused, a start is none, and a pod made for a task that is over is removed unused.
"""

import signal
from contextlib import ExitStack
from dataclasses import replace

import pytest

from harness.host_operator import HostOperators
from harness.operator_process import Fault, When
from harness.tenant import eventually, new_tenant
from harness.trial import Trial, check
from harness.witness import Witness

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

STOPS = (  # where each leader is stopped, and what becomes of that write when it goes on
    (Fault(when=When.BEFORE, call="create pods"), {"answered"}),  # a pod for a task that is over
    (Fault(when=When.BEFORE, call="merge sandboxtasks/status", number=3), {"ConflictError"}),
    (Fault(when=When.BEFORE, call="merge sandboxtasks/status", number=2), {"ConflictError"}),
    (Fault(when=When.BEFORE, call="start"), {"AgentRefusedError", "answered"}),
)
LONG = "import time\ntime.sleep(40)\n"  # the script still runs when all go on
ENDED = 1  # the exit status of an operator that lost its Lease
END_SECONDS = 30
TAKEN_SECONDS = 60


def test_stopped_leaders_that_go_on_do_nothing_twice(
    operators: HostOperators, witness: Witness, witnessed_class: str
) -> None:
    with ExitStack() as stack:
        trials = []
        for number, (fault, _) in enumerate(STOPS):
            tenant = stack.enter_context(new_tenant("faults"))
            own = replace(fault, signal="SIGSTOP", namespace=tenant.namespace)
            operator = operators.start(own, pod=f"host-{number}")
            trials.append(Trial(tenant=tenant, operator=operator, tail=LONG if fault.call == "start" else ""))
        last = operators.start(pod="host-last")
        for trial in trials:
            trial.operator.begin()
            trial.create(witnessed_class)
            assert trial.strike()
        last.begin()
        eventually(trials[-1].status, lambda status: status.get("phase") == "Running", seconds=TAKEN_SECONDS)
        eventually(lambda: witness.starts()[trials[-1].tenant.namespace], lambda starts: starts == 1)
        for trial in trials:
            trial.operator.process.send_signal(signal.SIGCONT)
        for trial, (fault, outcomes) in zip(trials, STOPS, strict=True):
            assert trial.operator.process.wait(END_SECONDS) == ENDED, trial.operator.log.read_text()
            assert trial.operator.outcome in {f"{outcome} {fault.call}" for outcome in outcomes}
        assert "completionTime" not in trials[-1].status()
        check(trials, witness)
        assert last.process.poll() is None, last.log.read_text()
