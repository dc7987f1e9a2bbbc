"""From a change to an event in the outbox."""
