"""Acts on dead letters: redelivery, decisions, export."""
