"""Checks of requests before an endpoint handles them: addresses, bodies, rates, certificates, management tokens."""
