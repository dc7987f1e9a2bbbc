"""Between the socket and the applications: hosts, bounds, rates, files."""
