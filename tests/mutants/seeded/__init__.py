"""Mutants made by operators from a seed, in the modules whose faults would lose, repeat or disclose something."""
