"""The pictures of the reference pages in the manual.

The test takes each picture. With `RENEW_PICTURES=1` it writes the pictures into the manual, and otherwise into a temporary directory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.admin.utils import quote
from pytest_django.plugin import DjangoDbBlocker

from config.launcher.options import ROOT
from identity.models import Tenant
from tests.conformance.web_process import WebProcess, web_process
from tests.factories.admin import browser_of
from tests.peers.admin_world import admin_world, staff_of_pictures
from tests.peers.chromium import PROGRAM, chromium

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(PROGRAM is None, reason="chromium is not installed: make test-peers"),
]

PLACE = ROOT / "docs" / "images"
MANUAL = ROOT / "docs" / "reference" / "admin.md"
# The size of the window: as wide as a picture in the manual, with the proportions of a laptop.
_WIDTH, _HEIGHT = 1280, 800


@pytest.fixture(scope="module")
def web(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[WebProcess]:
    with django_db_blocker.unblock(), web_process("uvicorn") as process:
        yield process


def test_the_manual_shows_a_picture_of_each_of_the_five_reference_pages(web: WebProcess, tenant: Tenant, tmp_path: Path) -> None:
    place = PLACE if os.environ.get("RENEW_PICTURES") else tmp_path
    session, base = browser_of(staff_of_pictures(tenant)), f"http://127.0.0.1:{web.address[1]}"
    with admin_world(tenant) as world, chromium() as browser:
        pages = {
            "dashboard": ("/admin/", "needs attention"),
            "user": (f"/admin/identity/user/{quote(world.ada.pk)}/change/", "Ada Lovelace"),
            "dead-letter": (f"/admin/provisioning/deadletter/{world.letter.pk}/change/", "Redeliver"),
            "connection": (f"/admin/identity/connection/{quote(world.people.pk)}/change/", "people"),
            "client": (f"/admin/authapi/client/{world.shop.pk}/change/", "Shop"),
        }
        page = browser.page()
        name = settings.SESSION_COOKIE_NAME
        page.send("Network.setCookie", name=name, value=session.cookies[name].value, url=base, httpOnly=True)
        for name, (address, says) in pages.items():
            page.show_as(width=_WIDTH, height=_HEIGHT)
            page.open(base + address)
            assert says in page.text("#content"), (name, page.text("#content"))
            page.picture(place / f"page-{name}.png")
            assert f"(../images/page-{name}.png)" in MANUAL.read_text()
            assert (PLACE / f"page-{name}.png").stat().st_size > 0
            assert page.complaints == []
