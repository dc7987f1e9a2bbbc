"""Turns a change into an event in the outbox."""
