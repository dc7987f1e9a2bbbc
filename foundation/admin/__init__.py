"""The kit of the admin: lists paged by keys, panels, fields."""
