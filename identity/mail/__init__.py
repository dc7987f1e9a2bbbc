"""Mail to people."""
