"""What people do with deliveries that were given up."""
