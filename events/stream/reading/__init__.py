"""The sources of open streams: tails, rings, pages and replays."""
