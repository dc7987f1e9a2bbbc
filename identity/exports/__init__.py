"""Exports of users as files."""
