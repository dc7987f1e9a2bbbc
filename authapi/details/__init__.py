"""Rich authorization requests (RFC 9396): types that an API registers, objects that clients ask for, and how the two are compared."""
