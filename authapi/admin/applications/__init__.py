"""The page on which a client is added, and the tabs of clients, of APIs and of the applications of a connection."""
