"""Social providers and generic OAuth 2.0: one table of the known providers, and the code that reads it."""
