"""Invitations to organizations: created, mailed, accepted."""
