"""What a person runs with an action by hand."""
