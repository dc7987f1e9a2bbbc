"""One factory for each of our models.

A factory sets only required fields. A test sets the fields that it checks. If the product creates a row, such as a user, with a service
that has rules, the factory uses that service. All other factories save a row.
"""
