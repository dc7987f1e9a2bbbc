"""Building blocks of a run: failures, results, log, masking, interruption."""
