"""Checks of requests before an endpoint handles them: IP addresses, bodies, rates, certificates, management tokens."""
