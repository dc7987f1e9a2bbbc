"""Slots, leases, calls between processes, canaries: what operators see and do."""
