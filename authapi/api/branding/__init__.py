"""The looks of a tenant over the management interface: settings, and the theme."""
