"""Token exchange profiles in the management interface."""
