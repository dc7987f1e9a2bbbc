"""The first synchronization of existing users, before a stream delivers, and the comparison, which only reports."""
