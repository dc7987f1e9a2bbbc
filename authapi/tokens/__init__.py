"""What is issued: keys, claims, minting, verifying, and what each client may ask for."""
