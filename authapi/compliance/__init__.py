"""Compliance levels of clients: the rules of FAPI 1 Advanced and the FAPI 2 Security Profile, and their enforcement."""
