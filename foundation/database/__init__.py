"""Transactions, statements and pages of PostgreSQL."""
