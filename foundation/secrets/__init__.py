"""Encryption, hashing and generation of secrets."""
