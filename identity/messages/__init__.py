"""Mails and text messages to users: their templates, their providers and senders, and jobs that send them at most once."""
