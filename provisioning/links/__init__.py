"""Storage of account links: which account on a server belongs to which user."""
