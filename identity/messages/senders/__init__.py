"""Senders of text messages, one module for each provider."""
