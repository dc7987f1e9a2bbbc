"""The endpoints to which browsers are sent (front channel): `/authorize` and the logout endpoints."""
