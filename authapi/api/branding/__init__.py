"""Branding of a tenant in the management interface: settings and the theme."""
