"""Pages of the manual that are made from the code: one module per page, each a function that returns its text."""
