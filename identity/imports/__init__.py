"""Imports of users: the file, its rows, hashes made elsewhere."""
