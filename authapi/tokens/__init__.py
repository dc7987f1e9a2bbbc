"""Tokens and codes of every kind: their keys, their claims, and how they are issued, verified and revoked."""
