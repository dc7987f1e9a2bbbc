"""The recording destination of deliveries, for tests of moves."""

from __future__ import annotations

from tests.provisioning.engine.conftest import recorder

__all__ = ["recorder"]
