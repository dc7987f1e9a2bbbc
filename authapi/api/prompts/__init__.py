"""Endpoints for texts of hosted pages, in the terms of client libraries: prompts, screens and texts."""
