"""Tokens that are bound to a key or a certificate (RFC 9449, RFC 8705): proofs, nonces, replays, and checks of the sender."""
