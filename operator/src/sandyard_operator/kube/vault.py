"""The Secret that holds the authority: read, or made once, by however many replicas start at the same time.

Each process applies a new authority under a field manager of its own and without force: whoever comes second is
refused by the API server and reads what the first one made. Applying, unlike creating, can be granted by name.
"""

from base64 import b64decode, b64encode
from datetime import datetime
from typing import Final
from uuid import uuid4

from sandyard_api import names
from sandyard_operator.kube.authority import Authority, generate
from sandyard_operator.kube.client import FIELD_MANAGER, Client
from sandyard_operator.kube.resource import SECRETS
from sandyard_operator.ports import ConflictError, NotFoundError, UnavailableError

TRIES: Final = 3


async def open_authority(client: Client, namespace: str, *, now: datetime) -> Authority:
    """Return the authority of this installation."""
    path = SECRETS.path(namespace=namespace, name=names.SECRET_AUTHORITY)
    for _ in range(TRIES):
        try:
            data = (await client.get(path)).get("data") or {}
            return Authority.read({name: b64decode(value) for name, value in data.items()})
        except NotFoundError:
            await _make(client, path, namespace, now=now)
    raise UnavailableError(f"Secret {names.SECRET_AUTHORITY} comes and goes")


async def _make(client: Client, path: str, namespace: str, *, now: datetime) -> None:
    data = {name: b64encode(value).decode() for name, value in generate(now=now).items()}
    metadata = {
        "namespace": namespace,
        "name": names.SECRET_AUTHORITY,
        "labels": {names.LABEL_MANAGED_BY: names.MANAGED_BY},
    }
    secret = {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata, "data": data}
    try:
        await client.apply(path, secret, manager=f"{FIELD_MANAGER}-{uuid4().hex}", force=False)
    except ConflictError:
        return
