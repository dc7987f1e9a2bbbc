"""Black-box tests of the event stream: a socket, a base URL and a way to make events are all they need."""
