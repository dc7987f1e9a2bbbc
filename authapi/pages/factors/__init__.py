"""The hosted pages of second factors: proving one, setting one up, and keeping the recovery code."""
