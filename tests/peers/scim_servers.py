"""SCIM servers of other makers as processes: `scim2-server` in Python, and one made with SCIMMY in Node."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from config.launcher.peers import PLACE
from tests.factories.scim import TOKEN, RealServer, free_port, listening, running_scim_server

SERVERS = ("scim2-server", "scimmy")
_DRIVER = Path(__file__).parent / "drivers" / "scimmy_server.js"


@contextmanager
def running(name: str) -> Iterator[RealServer]:
    """Run the named server until the end of the block; skip the test where it is not installed."""
    if name == "scim2-server":
        with running_scim_server() as server:
            yield server
        return
    node = shutil.which("node")
    modules = PLACE / "node_modules"
    if node is None or not (modules / "scimmy").exists():
        pytest.skip("SCIMMY is not installed: make test-peers")
    port = free_port()
    with listening([node, str(_DRIVER), str(port)], port, NODE_PATH=str(modules), SCIM_TOKEN=TOKEN):
        yield RealServer(f"http://127.0.0.1:{port}/scim/v2", name=name)
