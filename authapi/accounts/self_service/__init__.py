"""Changes that users make to their own account. Each change runs in one transaction, with its events, audit entry and log line."""
