"""Which account of a server is whose."""
