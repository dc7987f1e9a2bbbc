"""Registered URLs of clients, and the matching of requested URLs. Pure."""
