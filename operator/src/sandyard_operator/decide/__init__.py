"""The operator's decisions: ``reconcile(observed, now) -> Plan``, pure, total and idempotent.

Imports sandyard_api and the standard library only; no clock, no I/O, no logging. All that a decision needs
is in the objects, in the pod and in what its agent told; what else a process remembers may be lost at any
time.
"""
