"""Logins of devices without a browser (RFC 8628): the device shows a code, and the user opens a page in any browser."""
