"""Checks that run before every request: addresses, bodies, rates, certificates, management tokens."""
