"""Wheels for one task: what the image already has, what uv resolves and installs, what may be published.

uv runs as a locked child that can write nothing but its staging directory; what it leaves there is checked
by the agent after every process of it is gone, and appears for the runner by one rename. Nothing installed
here is ever on the agent's own path.
"""
