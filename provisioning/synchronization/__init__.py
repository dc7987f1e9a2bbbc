"""The first synchronization of the users that are there before a stream delivers, and the comparison that only reports."""
