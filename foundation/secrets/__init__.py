"""Sealing, hashing and drawing secrets."""
