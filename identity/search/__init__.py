"""Search of users by a query in Lucene's syntax: from the text of the query to the rows of one page."""
