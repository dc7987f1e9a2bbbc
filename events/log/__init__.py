"""From the outbox to a numbered log, and reading it."""
