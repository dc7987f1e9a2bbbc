"""Writing and reading of the sign-in log and the administrative log."""
