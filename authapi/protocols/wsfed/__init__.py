"""WS-Federation 1.2, passive requestor profile: applications that speak it log their users in here."""
