"""Pages of the manual in a real browser: accessible in light and dark mode, and not wider than a phone.

The test builds only some pages, because building all pages takes a minute of processor time. The other pages have the same theme.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from config.launcher import tool_environment
from config.launcher.options import ROOT
from config.launcher.peers import MANUAL, PLACE
from tests.peers.accessibility import AXE, barriers_of
from tests.peers.chromium import PROGRAM, Chromium, chromium

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(PROGRAM is None or not AXE.exists(), reason="chromium or axe-core is not installed: make test-peers"),
]

# The start page, a page with commands to copy, a page with wide tables, and a page with pictures.
_PAGES = ("index.md", "tutorials/first-stream.md", "reference/settings.md", "how-to/read-the-stream.md")


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the pages from a copy of their sources. In this copy, links to other pages do not work."""
    environment = PLACE / "docs"
    if not tool_environment.is_installed(MANUAL, environment):
        pytest.skip("Sphinx is not installed: make test-peers")
    source = tmp_path_factory.mktemp("manual")
    for name in (*_PAGES, "conf.py"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "docs" / name, source / name)
    for folder in ("_static", "images"):
        shutil.copytree(ROOT / "docs" / folder, source / folder)
    built = tmp_path_factory.mktemp("html")
    subprocess.run([environment / "bin" / "sphinx-build", "-Q", "-b", "html", source, built], check=True)
    return built


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as running:
        yield running


def test_every_page_of_the_manual_is_accessible_and_fits_a_phone(browser: Chromium, html: Path) -> None:
    page = browser.page()
    barriers = {}
    for name in _PAGES:
        page.open((html / name).with_suffix(".html").as_uri())
        if wrong := barriers_of(page, is_whole=True):
            barriers[name] = wrong
    assert barriers == {}, json.dumps(barriers, indent=1)
