"""Bring up a real Kubernetes for development, also on a machine that has no image registry.

Two providers stand behind one command: kind where Docker and kind work, and otherwise a node of our own, made of
programs built from Go modules and run in a network namespace with no way out. Nothing here is part of the product;
it imports nothing of it.
"""
