"""Mutants that operators make, drawn with a seed, in modules whose faults would lose or repeat events or disclose secrets."""
