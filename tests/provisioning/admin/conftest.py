"""Reuses the recording destination of the engine's tests."""

from tests.provisioning.engine.conftest import recorder, stream

__all__ = ["recorder", "stream"]
