"""What became of events: attempts, verdicts, redeliveries, and charts over time."""
