"""Outcomes of events: attempts, verdicts, redeliveries, and charts over time."""
