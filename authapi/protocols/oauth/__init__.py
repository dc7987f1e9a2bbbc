"""OAuth 2.0 and OpenID Connect: `/authorize`, its answers, and logouts."""
