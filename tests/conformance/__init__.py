"""Black-box tests of the event stream: they need only a socket, a base URL and a way to cause events."""
