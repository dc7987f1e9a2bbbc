"""The hosted pages: the pages of a login, and the pages that mailed links open."""
