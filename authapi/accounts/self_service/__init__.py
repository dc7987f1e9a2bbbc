"""What people do with their own account: each change is one transaction in their name, with events, audit and a line in the log."""
