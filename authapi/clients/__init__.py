"""Registered addresses of clients, and the matching of requested addresses. Pure."""
