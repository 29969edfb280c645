"""The engine under the operator: cache, keyed queue, due times, backoff, leadership, health.

Asyncio and the standard library; knows neither Kubernetes nor HTTP nor what a task is. What to do for a key
is decided in ``decide`` and carried out by ``tasks``; when and in which order is decided here.
"""
