"""Numbers the events of the outbox into a log, and reads the log."""
