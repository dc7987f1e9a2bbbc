"""Tails, rings, pages and replays: what open streams read."""
