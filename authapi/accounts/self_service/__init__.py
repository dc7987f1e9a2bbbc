"""Changes that users make to their own account. Each runs in one transaction, with events, an audit entry and a log line."""
