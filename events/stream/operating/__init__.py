"""What streams need for their operation: slots, leases, calls between processes, canaries."""
