"""Endpoints for old clients, one module each. A client must opt in to each (ADR 0103); new applications use none of them."""
