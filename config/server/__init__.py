"""The layer between the socket and the applications: hosts, limits, rates, files."""
