"""Django's PostgreSQL backend for a server that can stop being the primary at any moment. `base` is the module that Django loads."""
