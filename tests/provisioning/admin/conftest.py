"""The fixture of a destination that records deliveries, which the tests of the delivery engine define."""

from tests.provisioning.engine.conftest import recorder, stream

__all__ = ["recorder", "stream"]
