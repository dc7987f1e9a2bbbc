"""Shared parts of the management interface: endpoints, bodies, queries, pages, schemas."""
