"""The page that adds a client, the tabs of a client and of an API, and the tab of a connection that lists its applications."""
