"""Random mutants of the modules whose faults could lose events, repeat events or disclose secrets. A seed selects the mutants."""
