"""A check of `make lint`: refuses words and constructions that make a text hard to read. It covers texts, never behavior."""
