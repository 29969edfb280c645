"""The only room that talks to pods: one agent each, over TLS pinned to our own authority.

``AgentClient`` keeps the ``Agents`` door. May import aiohttp, the api package and ports; never the API server's
rooms. Every failure becomes one of the ports' errors.
"""
