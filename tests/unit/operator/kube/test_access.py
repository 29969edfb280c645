"""Who the operator is: a kubeconfig where one is named, else the account of its pod."""

import json
from pathlib import Path

import pytest
from kubernetes.aio.config import incluster_config

from sandyard_operator.kube.access import find_access

KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "c", "cluster": {"server": "https://api.test:6443/", "tls-server-name": "kubernetes"}}],
    "users": [{"name": "u", "user": {"token": "from-file"}}],
    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    "current-context": "x",
}


async def test_kubeconfig_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "config"
    path.write_text(json.dumps(KUBECONFIG))
    monkeypatch.setenv("KUBECONFIG", str(path))
    access = await find_access()
    assert (access.server, access.server_name, await access.token()) == (
        "https://api.test:6443",
        "kubernetes",
        "from-file",
    )


async def test_account_of_the_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text("abc\n")
    (tmp_path / "ca.crt").write_text("-----BEGIN CERTIFICATE-----\n")
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "2001:db8::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    access = await find_access()
    assert (access.server, await access.token()) == ("https://[2001:db8::1]:443", "abc")
