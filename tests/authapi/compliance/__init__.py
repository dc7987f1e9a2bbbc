"""Compliance levels: every rule, with a request that the rule refuses."""
