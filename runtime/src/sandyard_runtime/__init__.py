"""Everything that runs in a sandbox pod: the agent, the supervisor, the worker, and the wire between them."""
