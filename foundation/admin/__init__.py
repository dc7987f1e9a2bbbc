"""Shared parts of the admin: lists with keyset paging, panels and fields."""
