"""Claims of a provider in the admin: shown on pages, and entered for a preview of a profile."""
