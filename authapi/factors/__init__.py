"""Second factors of users: which factors a tenant offers, when a login requires a factor, and how users enroll and prove a factor."""
