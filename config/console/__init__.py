"""The admin console: its site, navigation, start page and the pages of a staff account."""
