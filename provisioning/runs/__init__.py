"""What a run of a destination is made of: its failures, results, words and end."""
