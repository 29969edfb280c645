"""What a request is about, as a label: a closed set of words, whatever names are in its path."""

import pytest

from sandyard_operator.kube.client import kind_of


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/api/v1/pods", "pods"),
        ("/api/v1/namespaces/ns/pods/sandyard-x-1", "pods"),
        ("/api/v1/namespaces/ns", "namespaces"),
        ("/api/v1/nodes", "nodes"),
        ("/apis/sandyard.dev/v1alpha1/sandboxclasses/default/status", "sandboxclasses/status"),
        ("/apis/sandyard.dev/v1alpha1/namespaces/ns/sandboxtasks/t/status", "sandboxtasks/status"),
        ("/apis/coordination.k8s.io/v1/namespaces/pods/leases/pods", "leases"),
    ],
)
def test_names_become_no_labels(path: str, kind: str) -> None:
    assert kind_of(path) == kind
