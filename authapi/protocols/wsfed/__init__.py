"""WS-Federation 1.2 for browsers: applications that speak it log their users in here."""
