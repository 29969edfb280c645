"""Hostile scripts and tenants on the real cluster, each with a control."""
