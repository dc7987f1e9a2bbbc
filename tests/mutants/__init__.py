"""Mutants: named faults that are planted into a copy of the source. The tests near each fault must fail."""
