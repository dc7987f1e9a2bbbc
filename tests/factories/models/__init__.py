"""One factory for each of our models.

A factory sets only required fields; a test sets the fields that it checks. Where the product creates a row with a service that
has rules, such as a user, the factory uses that service; all other factories save a row.
"""
