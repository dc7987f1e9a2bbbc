"""The hosted pages of second factors: to prove one, to set one up, and to save the recovery code."""
