"""Shared building blocks of all apps, without models of their own."""
