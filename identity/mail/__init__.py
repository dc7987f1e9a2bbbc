"""Mails to users and staff."""
