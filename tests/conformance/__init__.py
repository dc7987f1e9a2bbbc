"""Black-box tests of the event stream. They need only a socket, a base URL and a function that causes events."""
