"""The operations of the interface that the public client libraries call, including operations that this service does not have."""
