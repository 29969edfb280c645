"""The only room that imports kopf: watch events come in here, probes are answered here.

kopf is a shell: it logs in, lists, watches and reconnects. None of its handlers writes anything to the cluster,
and nothing of its own machinery for changes, timers or finalizers is used.
"""
