"""Rich authorization requests (RFC 9396): types that an API registers, objects that clients request, and the comparison of objects."""
