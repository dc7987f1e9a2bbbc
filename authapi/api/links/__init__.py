"""Links that are handed to people: tickets, and invitations to organizations."""
