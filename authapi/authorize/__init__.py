"""The authorization endpoint: what was asked, what must happen next, and how the answer travels back."""
