"""Mutants: named faults, each of which is planted into a copy of the source. One of the tests that the mutant names must then fail."""
