"""Runs the Node parts of the tutorials exactly as they are printed, against a running service."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.following import follow
from tests.journeys.conftest import service as service
from tests.journeys.service import Service

pytestmark = pytest.mark.peer


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
def test_the_tutorial_about_consuming_events_in_node_works(service: Service, tmp_path: Path) -> None:
    assert follow("consume-events", service, tmp_path, section="In Node") > 0
