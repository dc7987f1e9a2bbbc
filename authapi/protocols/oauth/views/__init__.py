"""The pages of the front channel: `/authorize` and the logout endpoints."""
