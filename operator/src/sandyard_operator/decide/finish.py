"""The final write (W2): reason, message, what the run left behind, and how long each part took."""

from datetime import datetime
from typing import Final

from sandyard_api.reasons import Reason
from sandyard_api.wire import InstallStatus
from sandyard_operator.decide.ends import End, Ran
from sandyard_operator.decide.facts import Observed
from sandyard_operator.decide.plan import Emit, Plan, StatusStep, WriteStatus
from sandyard_operator.decide.status import dump, finished

GOOD: Final = frozenset({Reason.SUCCEEDED, Reason.CANCELLED})


def finish(
    observed: Observed,
    now: datetime,
    end: End,
    *,
    ran: Ran | None = None,
    installed: InstallStatus | None = None,
) -> Plan:
    """Write the end; where the API server refused it as it was, without what the run left."""
    if observed.refused_write:
        message = f"The status could not be written ({end.reason}): {observed.refused_write}"
        end, ran, installed = End(Reason.INTERNAL_ERROR, message), None, None
    status = finished(observed, now, end, ran=ran, installed=installed)
    return Plan(
        actions=(
            WriteStatus(StatusStep.FINAL, dump(status)),
            Emit(end.reason, end.reason.happened, warning=end.reason not in GOOD),
        )
    )
