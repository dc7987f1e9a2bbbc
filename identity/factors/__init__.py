"""Second factors and passkeys."""
