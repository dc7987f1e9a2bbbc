"""Changes that users make to their own account. One transaction contains a change, its events, its audit entry and its sign-in log line."""
