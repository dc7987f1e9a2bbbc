"""The tabs of a connection, and the fields of its options."""
