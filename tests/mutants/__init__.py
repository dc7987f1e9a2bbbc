"""Mutants: named faults that are planted into a copy of the source. The tests that each mutant names must fail."""
