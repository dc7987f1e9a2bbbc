"""A login: from a client's request over the hosted pages to its answer. Knows no protocol (`authapi.login.protocol`)."""
