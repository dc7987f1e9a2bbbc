"""The audit log: changes by staff, clients and commands."""
