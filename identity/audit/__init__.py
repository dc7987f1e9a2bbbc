"""The audit log: what staff, clients and commands changed."""
