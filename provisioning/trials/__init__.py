"""Trials of actions, started manually by a person."""
