"""Compliance levels: every rule with a request that it refuses."""
