"""Django's PostgreSQL backend for a server that can lose its role at any moment. `base` is the module that Django loads."""
