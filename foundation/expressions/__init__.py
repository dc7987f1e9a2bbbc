"""Expressions that tenants write: bounded JMESPath, and its functions."""
