"""Operation of streams: slots, leases, calls between processes, canaries."""
