"""Runs a login: from a client's request, through the hosted pages, to the answer. Protocols are in a table (`authapi.login.protocol`)."""
