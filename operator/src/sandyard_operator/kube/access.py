"""Who we are and where the API server is: the pod's service account, or a kubeconfig outside a cluster.

The official client reads both, exec plug-ins included; a service account's token is read again each minute.
"""

import os
import ssl
from dataclasses import dataclass

from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.config import ConfigException, load_incluster_config, load_kube_config

BEARER = "BearerToken"  # under which the official client keeps the token


@dataclass(frozen=True, slots=True)
class Access:
    """The way to one API server."""

    configuration: Configuration

    @property
    def server(self) -> str:
        """Return the server's URL, without a slash at its end."""
        return str(self.configuration.host).rstrip("/")

    @property
    def server_name(self) -> str | None:
        """Return the name in the server's certificate where it is not the URL's."""
        return self.configuration.tls_server_name

    def ssl_context(self) -> ssl.SSLContext:
        """Return TLS that checks the server and shows our certificate."""
        context = ssl.create_default_context(cafile=self.configuration.ssl_ca_cert)
        # From Python 3.13 on certificates without every key identifier are refused; many clusters' are, and Go's
        # clients take them. The chain and the name are checked all the same.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if not self.configuration.verify_ssl:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.configuration.cert_file:
            context.load_cert_chain(self.configuration.cert_file, self.configuration.key_file)
        return context

    async def token(self) -> str | None:
        """Return the bearer token of this moment."""
        found: str | None = await self.configuration.get_api_key_with_prefix(BEARER)
        return found.split(" ", 1)[-1].strip() if found else None


async def find_access(kubeconfig: str | None = None) -> Access:
    """Return the way to the API server: a kubeconfig or ``KUBECONFIG``, else the pod's service account."""
    configuration = Configuration()
    kubeconfig = kubeconfig or os.environ.get("KUBECONFIG")
    if kubeconfig:
        await load_kube_config(  # type: ignore[no-untyped-call]
            config_file=kubeconfig, client_configuration=configuration, persist_config=False
        )
        return Access(configuration)
    try:
        load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
    except ConfigException:
        await load_kube_config(  # type: ignore[no-untyped-call]
            client_configuration=configuration, persist_config=False
        )
    return Access(configuration)
