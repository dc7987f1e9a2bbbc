"""Building blocks that all apps share. This package has no models."""
