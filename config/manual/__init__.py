"""Pages of the manual that are generated from the code: one module per page, each with a function that returns its text."""
