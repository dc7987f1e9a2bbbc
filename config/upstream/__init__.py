"""The operations of the interface that the public client libraries call, implemented here or not."""
