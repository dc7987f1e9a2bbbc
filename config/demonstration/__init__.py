"""The demo tenant and its application."""
