"""The pictures in the README and in the how-to guides.

The test takes each picture. With `RENEW_PICTURES=1` it writes the pictures into the manual, and otherwise into a temporary directory.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from django.conf import settings
from pytest_django.plugin import DjangoDbBlocker

from config.launcher.options import ROOT
from events.log.numbering import number_tenant
from events.models import LogEntry
from identity.models import Job, Tenant
from identity.services.jobs import run_job
from identity.services.users import create_user, update_user
from provisioning.synchronization import work  # noqa: F401 (it registers the functions of the jobs)
from tests.conformance.target import make_target
from tests.conformance.web_process import WebProcess, web_process
from tests.factories.admin import browser_of
from tests.factories.scim import TOKEN, running_scim_server
from tests.peers.admin_world import AdminWorld, admin_world, staff_of_pictures
from tests.peers.chromium import PROGRAM, Page, chromium

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(PROGRAM is None, reason="chromium is not installed: make test-peers"),
]

IMAGES = ROOT / "docs" / "images"
PLACES = (ROOT / "README.md", ROOT / "docs/how-to/read-the-stream.md", ROOT / "docs/how-to/first-synchronization.md")
_WIDTH, _HEIGHT = 1280, 900
_README_HEIGHT = 1085
_SUBMIT = "#content input[type=submit], #content button[type=submit]"


@pytest.fixture(scope="module")
def web(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[WebProcess]:
    with django_db_blocker.unblock(), web_process("uvicorn") as process:
        yield process


class Camera:
    """Takes pictures of a page, and notes the names of the pictures."""

    def __init__(self, page: Page, base: str, place: Path) -> None:
        self.page, self._base, self._place = page, base, place
        self.taken: set[str] = set()

    def open(self, address: str) -> None:
        self.page.show_as(width=_WIDTH, height=_HEIGHT)
        self.page.open(self._base + address)

    def send(self, selector: str) -> None:
        """Click the button that matches the selector, and wait for the next page."""
        self.page.evaluate(f"window.isOld = true; document.querySelector({json.dumps(selector)}).click()")
        self.page.until("!window.isOld && document.readyState === 'complete'", seconds=30)

    def take(self, name: str, says: str) -> None:
        self.page.until(f"document.querySelector('#content-start').innerText.includes({json.dumps(says)})", seconds=30)
        self.page.picture(self._place / name)
        self.taken.add(name)
        assert self.page.complaints == []


def test_each_picture_of_the_readme_and_the_guides_can_be_taken(web: WebProcess, tenant: Tenant, tmp_path: Path) -> None:
    place = IMAGES if os.environ.get("RENEW_PICTURES") else tmp_path
    session, base = browser_of(staff_of_pictures(tenant)), f"http://127.0.0.1:{web.address[1]}"
    with admin_world(tenant) as world, chromium() as browser:
        page, name = browser.page(), settings.SESSION_COOKIE_NAME
        page.send("Network.setCookie", name=name, value=session.cookies[name].value, url=base, httpOnly=True)
        camera = Camera(page, base, place)
        _start_page(camera)
        _live_events(camera, world)
        _event(camera, world)
        _connections(camera, web, tenant)
        _guided_setup(camera, tenant)
    texts = "".join(path.read_text() for path in PLACES)
    assert all(f"images/{name})" in texts and (IMAGES / name).stat().st_size > 0 for name in camera.taken)


def test_every_picture_is_shown_in_the_manual_or_the_readme() -> None:
    texts = "".join(path.read_text() for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")))
    assert [path.name for path in sorted(IMAGES.iterdir()) if f"images/{path.name})" not in texts] == []


def _start_page(camera: Camera) -> None:
    camera.open("/admin/")
    camera.page.show_as(width=_WIDTH, height=_README_HEIGHT)
    camera.take("admin-start-page.png", "need")


def _live_events(camera: Camera, world: AdminWorld) -> None:
    camera.open("/admin/events/live/")
    camera.page.until("document.querySelector('#live-state').textContent === 'Connected.'")
    for name in ("Mary Somerville", "Sophie Germain", "Emmy Noether"):
        address = f"{name.split()[0].lower()}@example.test"
        create_user(tenant_id=world.tenant.pk, connection=world.people, email=address, name=name)
        number_tenant(world.tenant.pk)
    camera.page.until("document.querySelectorAll('#live-list > li').length === 3")
    # Wait for the names of the entities, which the page requests after it has received the events.
    camera.page.until("[...document.querySelectorAll('.live-entity')].every((entity) => entity.querySelector('a'))")
    camera.page.click("#live-list li:last-child summary")
    camera.take("admin-live-events.png", "Emmy Noether")


def _event(camera: Camera, world: AdminWorld) -> None:
    changes = {"given_name": "Augusta Ada", "user_metadata": {"language": "en"}}
    update_user(tenant_id=world.tenant.pk, user_id=world.ada.user_id, changes=changes)
    number_tenant(world.tenant.pk)
    newest = LogEntry.objects.filter(tenant_id=world.tenant.pk).order_by("-position").first()
    assert newest is not None
    camera.open(f"/admin/events/logentry/{newest.pk}/change/")
    camera.take("admin-event.png", "Augusta Ada")


def _connections(camera: Camera, web: WebProcess, tenant: Tenant) -> None:
    target = make_target(tenant, web.address)
    with ExitStack() as streams:
        for query in (None, {"event_type": "user.deleted"}):
            streams.enter_context(target.subscribe(query, token=target.token())).opened()
        camera.open("/admin/events/connections/")
        camera.page.evaluate(
            "(() => { const list = document.querySelector('.canary select');"
            f" list.value = [...list.options].find((option) => option.text.includes({json.dumps(target.client.client_id)})).value; }})()"
        )
        camera.send(".canary button")
        camera.take("admin-open-connections.png", "2 of 2 open streams")


def _guided_setup(camera: Camera, tenant: Tenant) -> None:
    page = camera.page
    with running_scim_server() as server:
        camera.open("/admin/provisioning/connect/new/")
        for field, value in (("name", "Second server"), ("SCIM_BASE_URL", server.base_url), ("SCIM_BEARER_TOKEN", TOKEN)):
            page.fill(f"#id_{field}", value)
        camera.send(_SUBMIT)
        camera.send(_SUBMIT)
        camera.send(".connect-next a")
        camera.send(_SUBMIT)
        camera.take("admin-connect-mapping.png", "Would create the user")
        camera.send(".connect-next a")
        camera.send(_SUBMIT)
        job = Job.objects.of(tenant.pk).order_by("-created_at", "-pk")[0]
        run_job(job.pk)
        camera.take("admin-connect-dry-run.png", "created")
