"""Users, organizations, groups and roles: the tables on their pages, and the forms that add a row to a table."""
