"""The addresses that a client has registered, and which others match them. Pure."""
