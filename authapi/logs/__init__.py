"""The log of sign-ins and the administrative log, written and read."""
