"""Caches, counters and threads of a process."""
