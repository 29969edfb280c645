"""Whether what is in force in a pod, as its agent probed it, is what its class requires."""

from typing import Final

from sandyard_api.reasons import Reason
from sandyard_api.sandbox_class import IsolationFeature, UserNamespaces
from sandyard_operator.decide.ends import DID_NOT_RUN, End
from sandyard_operator.decide.facts import AgentView, Observed
from sandyard_operator.decide.terms import wants_egress

EGRESS_LANDLOCK_ABI: Final = 4  # the first that bounds TCP ports


def missing_isolation(observed: Observed, view: AgentView) -> End | None:
    """Say what the class requires and the pod lacks."""
    if observed.sandbox_class is None or view.status is None:
        return None
    spec, there = observed.sandbox_class.spec, view.status.isolation
    if IsolationFeature.SECCOMP in spec.isolation.require and not there.seccomp:
        return _unavailable("the system call filter could not be loaded")
    if IsolationFeature.LANDLOCK in spec.isolation.require and there.landlock_abi < 1:
        return _unavailable("the node's kernel has no Landlock")
    if wants_egress(observed.task.spec) and there.landlock_abi < EGRESS_LANDLOCK_ABI:
        return _unavailable(f"egress needs Landlock ABI {EGRESS_LANDLOCK_ABI}, the node has {there.landlock_abi}")
    if spec.user_namespaces is UserNamespaces.REQUIRED and not there.user_namespace:
        return _unavailable("the pod has no user namespace")
    if needs_policies(observed) and view.foreign_policies:
        named = ", ".join(view.foreign_policies)
        return _unavailable(f"NetworkPolicy {named} opens the pod beyond what the class allows; remove it")
    return None


def needs_policies(observed: Observed) -> bool:
    """Tell whether policies of others that open the pod forbid the start."""
    sandbox_class = observed.sandbox_class
    return sandbox_class is None or IsolationFeature.NETWORK_POLICY in sandbox_class.spec.isolation.require


def _unavailable(what: str) -> End:
    return End(Reason.ISOLATION_UNAVAILABLE, f"Required isolation is missing: {what}. {DID_NOT_RUN}")
