"""The page that adds a client, the tabs of a client and of an API, and the tab with the applications of a connection."""
