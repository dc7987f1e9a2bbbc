"""The one way out: addresses checked, deadlines kept, redirects refused, answers bounded."""
