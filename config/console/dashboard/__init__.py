"""The start page of the admin: figures, charts, problems in words, and the first steps of a new tenant."""
