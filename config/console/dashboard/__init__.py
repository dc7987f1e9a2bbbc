"""The start page of the admin: figures, charts, what is wrong in words, and the first steps of a new tenant."""
