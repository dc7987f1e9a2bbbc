"""Organizations in the management interface."""
