"""Logins for devices without a browser (RFC 8628): a code on the device, a page in any browser."""
