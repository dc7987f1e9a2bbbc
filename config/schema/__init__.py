"""Restores the schema of a new database from a dump. This is faster than to run ninety migrations."""
