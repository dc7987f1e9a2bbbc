"""Mutants: named faults, each of which is planted into a copy of the source. At least one of the tests of the mutant must then fail."""
