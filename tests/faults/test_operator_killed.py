"""The real operator is killed before and after its calls to the API server and the agents, on the real cluster.

Each process is killed at its own point of its own task; the next finishes what is left over and is killed in turn, and
the last one is not. A witness outside the cluster counts the starts. Only calls in the task's namespace are counted:
those about classes, nodes and the Lease are not its own.
"""

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import count

import pytest

from harness.host_operator import HostOperators
from harness.operator_process import Fault, When
from harness.tenant import new_tenant
from harness.trial import SIX, Trial, check
from harness.witness import Witness

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

Prepare = Callable[[str, Fault], Trial]
IN_ORDER = (
    "merge sandboxtasks/status",
    "create pods",
    "send_bundle",
    "start",
    "acknowledge",
)
INSTALLING = ("merge pods", "install")
OWN_CALL = 10  # the pod's creation; before it, a task with dependencies makes the same calls as one without
# Each is under way together with other calls, so its number differs from one time to the next.
AT_ONCE = ("apply secrets", "apply networkpolicies", "create events", "delete pods")


@pytest.fixture
def prepare(operators: HostOperators) -> Iterator[Prepare]:
    """Give what makes a trial: a namespace, and an operator that has done its imports."""
    with ExitStack() as stack:

        def made(head: str, fault: Fault) -> Trial:
            tenant = stack.enter_context(new_tenant("faults"))
            operator = operators.start(replace(fault, namespace=tenant.namespace))
            return Trial(tenant=tenant, operator=operator, head=head)

        yield made


def series(trials: Iterable[Trial], class_name: str) -> list[Trial]:
    """Have each operator finish what the one before left, and be struck in its own trial; end where one is not."""
    done: list[Trial] = []
    for trial in trials:
        trial.operator.begin()
        if done:
            done[-1].finish()
        trial.create(class_name)
        done.append(trial)
        if not trial.strike():
            break
        assert trial.operator.process.wait() == -signal.SIGKILL
    done[-1].operator.process.kill()
    done[-1].operator.process.wait()
    return done


def ahead(trials: Iterable[Trial]) -> Iterator[Trial]:
    """Prepare each trial while the one before it is under way."""
    last: Trial | None = None
    for trial in trials:
        if last is not None:
            yield last
        last = trial
    if last is not None:
        yield last


@pytest.mark.parametrize("head", ["", SIX], ids=["plain", "with a dependency"])
def test_killed_after_each_call(
    head: str, operators: HostOperators, prepare: Prepare, witness: Witness, witnessed_class: str
) -> None:
    first = OWN_CALL if head else 1
    trials = series(ahead(prepare(head, Fault(number=number)) for number in count(first)), witnessed_class)
    struck = [trial.operator.struck for trial in trials]
    assert struck[-1] == ""
    assert set(struck) >= {f"after {call}" for call in (*IN_ORDER, *(INSTALLING if head else ()))}
    operators.start().begin()
    check(trials, witness)


def test_killed_before_and_after_each_kind_of_write(
    operators: HostOperators, prepare: Prepare, witness: Witness, witnessed_class: str
) -> None:
    faults = [Fault(when=When.BEFORE, call=call) for call in (*IN_ORDER, *INSTALLING, *AT_ONCE)]
    faults += [Fault(when=When.AFTER, call=call) for call in AT_ONCE]
    trials = series(ahead(prepare(SIX, fault) for fault in faults), witnessed_class)
    assert [trial.operator.struck for trial in trials] == [f"{fault.when} {fault.call}" for fault in faults]
    operators.start().begin()
    check(trials, witness)
