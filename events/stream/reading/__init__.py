"""The sources of the frames of open streams: tails, rings, pages and replays."""
