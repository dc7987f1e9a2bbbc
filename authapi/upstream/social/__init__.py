"""Social providers and generic OAuth 2.0: one table of what is known of each, and what reads it."""
