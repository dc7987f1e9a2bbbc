"""One factory for each model of ours.

A factory says what a row cannot do without, and nothing that a test looks at: a test names what it cares about. What the product makes
by a service with rules, such as a user, its factory makes by that service; everything else is a row.
"""
