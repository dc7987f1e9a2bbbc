"""One factory for each of our models.

A factory sets only required fields. A test sets the fields that it checks. If the product creates a row with a service that
has rules, such as a user, the factory uses that service. All other factories save a row.
"""
