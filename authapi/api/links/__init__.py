"""Links that applications deliver to users: tickets, and invitations to organizations."""
