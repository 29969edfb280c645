"""The authority's Secret: made once by however many start at the same time."""

import asyncio
from uuid import uuid4

from harness.control_plane import ControlPlane
from harness.kube_room import now
from sandyard_api import names
from sandyard_operator.kube.access import Access
from sandyard_operator.kube.client import Client
from sandyard_operator.kube.resource import SECRETS
from sandyard_operator.kube.vault import open_authority


async def test_operators_that_start_at_once_agree(access: Access, plane: ControlPlane) -> None:
    home = f"home-{uuid4().hex[:8]}"
    assert plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": home}}).is_success
    async with Client(access) as one, Client(access) as other:
        opened = await asyncio.gather(*(open_authority(c, home, now=now()) for c in (one, other) * 4))
        secret = await one.get(SECRETS.path(namespace=home, name=names.SECRET_AUTHORITY))
    assert len({authority.root_keys for authority in opened}) == 1
    assert len({authority.ca_bundle for authority in opened}) == 1
    assert len(secret["metadata"]["managedFields"]) == 1
