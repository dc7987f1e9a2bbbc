"""The test suite; it mirrors the source, one file per module."""
