"""Guided setup of a SCIM server, step by step."""
