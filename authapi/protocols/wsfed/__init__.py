"""WS-Federation 1.2 for browsers: applications that use it log their users in with this service."""
