"""Search of users by a query in Lucene's syntax: from its text to the rows of one page."""
