"""The one decision: from what is known about a task to what is done about it next.

Total and level-based: whatever was lost, repeated or forgotten before, the same facts give the same plan,
and every task that is not finished has an action, something it listens to, or a time to look again.
"""

from datetime import datetime
from typing import Final

from sandyard_api.reasons import Reason
from sandyard_operator.decide.admit import admit
from sandyard_operator.decide.cleanup import clean_up, remove
from sandyard_operator.decide.ends import DID_NOT_RUN, End
from sandyard_operator.decide.facts import Observed
from sandyard_operator.decide.finish import finish
from sandyard_operator.decide.plan import Plan, ReadTask
from sandyard_operator.decide.run import follow
from sandyard_operator.decide.standing import Standing, standing_of
from sandyard_operator.decide.start import start

FAULTS: Final = 5  # a bug of ours ends a task rather than going round for ever


def reconcile(observed: Observed, now: datetime) -> Plan:
    """Decide what comes next for one task."""
    task = observed.task
    if observed.unsure:
        return Plan(actions=(ReadTask(),))
    if task.metadata.deletion_timestamp is not None:
        return remove(observed)
    standing = standing_of(task)
    if standing is Standing.FINISHED:
        return clean_up(observed, now)
    if observed.faults >= FAULTS:
        message = f"Sandyard failed {observed.faults} times over this task; the operator's log says how."
        return finish(observed, now, End(Reason.INTERNAL_ERROR, message))
    if task.status is not None and task.status.run is not None:
        return follow(observed, task.status.run, now)
    if task.spec.cancel:
        return finish(observed, now, End(Reason.CANCELLED, f"spec.cancel was set. {DID_NOT_RUN}"))
    if standing is Standing.ADMITTED:
        return start(observed, now)
    return admit(observed, standing, now)
