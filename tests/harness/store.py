"""Objects that a test creates on an API server, changes, and leaves nothing of."""

from typing import Any, Final

from harness.control_plane import ControlPlane
from harness.objects import collection, manifest

DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Stored:
    """One object that a test owns; it is deleted with the test."""

    def __init__(self, plane: ControlPlane, kind: str, spec: dict[str, Any], name: str) -> None:
        self._plane = plane
        self.path = f"{collection(kind)}/{name}"
        created = plane.request("POST", collection(kind), manifest(kind, spec, name=name))
        assert created.status_code == 201, created.text
        self.created: dict[str, Any] = created.json()

    def patch(self, body: dict[str, Any], *, status: bool = False) -> tuple[int, str]:
        """Merge-patch it; return the status code and the message."""
        answer = self._plane.request("PATCH", f"{self.path}/status" if status else self.path, body)
        return answer.status_code, answer.json().get("message", "")

    def read(self) -> dict[str, Any]:
        """Return it as it is."""
        found: dict[str, Any] = self._plane.request("GET", self.path).json()
        return found


class Store:
    """Creates objects and deletes them at the end of a test."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._paths: list[str] = []

    def create(self, kind: str, spec: dict[str, Any], *, name: str = "one") -> Stored:
        """Create an object."""
        stored = Stored(self._plane, kind, spec, name)
        self._paths.append(stored.path)
        return stored

    def clear(self) -> None:
        """Delete what was created."""
        for path in self._paths:
            self._plane.request("DELETE", path)
