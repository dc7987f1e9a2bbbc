"""The pages between a request to `/authorize` and its answer."""
