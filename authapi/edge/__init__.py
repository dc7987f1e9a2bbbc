"""What stands before every request: addresses, bodies, rates, certificates, management tokens."""
