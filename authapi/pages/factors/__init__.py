"""The hosted pages on which users prove a second factor, set one up, and save the recovery code."""
