"""Second factors of users: which ones a tenant offers, when a login requires one, and how one is enrolled and proven."""
