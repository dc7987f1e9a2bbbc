"""Endpoints about mails: who sends them, and what they say."""
