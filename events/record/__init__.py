"""Records a change as an event in the outbox."""
