"""Invitations to organizations: offered, mailed, accepted."""
