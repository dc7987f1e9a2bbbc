"""Token exchange (RFC 8693) for an API that acts for the users whose tokens it receives."""
