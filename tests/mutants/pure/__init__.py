"""Every mutant of the pure modules, made by the operators of cosmic-ray."""
