"""The delivery engine: from the log to settled deliveries, in order per stream and document."""
