"""Tasks carried through: observes, has ``decide`` decide, and carries plans out through the ports.

Knows asyncio, the engine in ``drive`` and the ports; neither Kubernetes nor HTTP. What it remembers about a
task is convenience: a process that starts with nothing goes on from the objects and from what the agents
tell.
"""
