"""Endpoints of clients written long ago, one module each. A client opts in to each (ADR 0103); new applications use none of them."""
