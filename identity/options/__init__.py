"""Options of connections: schemas, sealed secrets, discovery."""
