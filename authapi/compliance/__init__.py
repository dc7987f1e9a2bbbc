"""Compliance levels of clients: the rules of FAPI 1 Advanced and of the FAPI 2 Security Profile, and where they are enforced."""
