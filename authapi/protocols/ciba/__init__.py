"""Logins that an application begins and a user approves elsewhere (OpenID CIBA Core 1.0, poll mode)."""
