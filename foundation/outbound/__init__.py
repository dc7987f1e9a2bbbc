"""All outbound requests: addresses checked, deadlines kept, redirects refused, responses bounded."""
