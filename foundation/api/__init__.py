"""The kit of the management interface: endpoints, bodies, queries, pages, schemas."""
