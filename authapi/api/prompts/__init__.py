"""Endpoints of the pages that people see, as client libraries name them: prompts, screens and texts."""
