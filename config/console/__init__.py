"""The admin: its site, navigation, start page and the account of staff."""
