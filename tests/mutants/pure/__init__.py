"""Mutants of the pure modules: every change that the operators of cosmic-ray can make."""
