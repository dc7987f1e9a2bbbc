"""Logins that an application begins and a user approves in another browser (OpenID CIBA Core 1.0, poll mode)."""
