"""Endpoints for mails: their provider and their templates."""
