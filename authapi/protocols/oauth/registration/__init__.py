"""Clients that register themselves (RFC 7591) and manage their registration (RFC 7592)."""
