"""Rich authorization requests (RFC 9396): types registered by an API, objects requested by clients, and their comparison."""
