"""Second factors and passkeys over the management interface."""
