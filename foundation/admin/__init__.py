"""Shared parts of the admin: keyset-paged lists, panels, fields."""
