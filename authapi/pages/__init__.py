"""The hosted pages: the pages of a login, and the pages behind mailed links."""
