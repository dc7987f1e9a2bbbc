"""The operations of the interface whose client libraries this service answers: all of them, built or not."""
