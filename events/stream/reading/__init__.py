"""Where open streams get their frames: tails, rings, pages and replays."""
