"""Takes fixtures from the tests of the delivery engine: a stream, and a destination that records deliveries."""

from tests.provisioning.engine.conftest import recorder, stream

__all__ = ["recorder", "stream"]
