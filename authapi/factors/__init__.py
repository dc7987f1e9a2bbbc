"""Second factors of end users: which ones a tenant offers, when a login asks for one, how one is enrolled and proven."""
