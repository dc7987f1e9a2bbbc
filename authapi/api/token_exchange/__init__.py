"""Profiles of token exchange in the management interface."""
