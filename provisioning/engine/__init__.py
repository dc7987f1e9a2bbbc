"""The delivery engine: creates deliveries from the log, sends them and settles them. In each stream, the events of one document keep their
order."""
