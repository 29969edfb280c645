"""A small raw client of the API server for measurements and witnesses: JSON in, JSON out, watches iterated.

Reads the kubeconfig's client certificate; kubectl's own start-up would drown what is measured.
"""

import base64
import json
import os
import ssl
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import httpx2
import yaml


class Api:
    """One connection pool to the API server that KUBECONFIG names."""

    def __init__(self, kubeconfig: str | None = None) -> None:
        config = yaml.safe_load(Path(kubeconfig or os.environ["KUBECONFIG"]).read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        context = ssl.create_default_context(cadata=authority)
        with tempfile.NamedTemporaryFile() as pair:  # the ssl module reads certificates from files only
            for part in ("client-certificate-data", "client-key-data"):
                pair.write(base64.b64decode(user[part]))
            pair.flush()
            context.load_cert_chain(pair.name)
        self._client = httpx2.Client(base_url=cluster["server"], verify=context, timeout=60)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def call(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """Make one request; raises AssertionError with the server's answer when it fails."""
        answer = self._client.request(method, path, json=body)
        if answer.is_error:
            raise AssertionError(f"{method} {path}: {answer.status_code} {answer.text}")
        found: dict[str, Any] = answer.json()
        return found

    def watch(self, path: str, *, name: str, version: str) -> Iterator[dict[str, Any]]:
        """Yield each state of one object from a version on."""
        query = {"watch": "1", "fieldSelector": f"metadata.name={name}", "resourceVersion": version}
        with self._client.stream("GET", path, params=query) as answer:
            for line in answer.iter_lines():
                yield json.loads(line)["object"]

    def create_and_watch(
        self, path: str, body: dict[str, Any], done: Callable[[dict[str, Any]], bool]
    ) -> dict[str, Any]:
        """Create an object and return it as soon as it is done."""
        created = self.call("POST", path, body)
        metadata = created["metadata"]
        for seen in self.watch(path, name=metadata["name"], version=metadata["resourceVersion"]):
            if done(seen):
                return seen
        raise AssertionError(f"the watch of {metadata['name']} ended early")


def has_condition(item: dict[str, Any], kind: str) -> bool:
    """Whether an object has a condition of this type that is true."""
    conditions = item.get("status", {}).get("conditions", [])
    return any(c["type"] == kind and c["status"] == "True" for c in conditions)
