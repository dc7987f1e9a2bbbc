"""What a process remembers, counts and hands to threads."""
