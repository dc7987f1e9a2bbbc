"""Second factors and passkeys in the management interface."""
