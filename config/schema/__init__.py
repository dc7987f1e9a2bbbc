"""The schema of a new database, restored from a dump instead of by ninety migrations."""
