"""Starts the agent. It listens before it imports what answering needs, so that early callers wait, not fail.

``python -I -m sandyard_runtime.agent`` in a pod; ``--root DIR --port N`` and the like elsewhere.
"""

import os
import sys

from sandyard_api import names
from sandyard_runtime.agent.server import listen, tls_context
from sandyard_runtime.agent.settings import settings_from


def main() -> None:
    """Run until told to stop."""
    # No plugin is wanted, and looking for some costs a tenth of the start.
    os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"
    settings = settings_from(os.environ, sys.argv[1:])
    listener = listen(settings.port)
    print(f"listening on port {listener.getsockname()[1]}", file=sys.stderr, flush=True)  # noqa: T201 - before logging
    directory = settings.at(names.AGENT_TLS_DIR)
    context = tls_context(directory / "tls.crt", directory / "tls.key")
    from sandyard_runtime.agent.agent import serve

    serve(settings, listener, context)


if __name__ == "__main__":
    main()
