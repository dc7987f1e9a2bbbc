"""Imports of users: the file, its rows, and hashes of other systems."""
