"""Moves events from the outbox into the log of their tenant, gives them positions, and reads the log."""
