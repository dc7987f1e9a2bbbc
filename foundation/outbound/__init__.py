"""Sends all outbound requests: checks IP addresses, keeps deadlines, refuses redirects, and bounds responses."""
