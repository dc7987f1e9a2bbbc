"""Connecting a SCIM server step by step."""
