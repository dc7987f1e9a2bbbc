"""The ten most frequent tasks in the admin, done with the keyboard alone. The manual lists how many key presses each task needs.

The test compares the numbers with the table in `docs/reference/admin.md`. With `RENEW_KEYS=1`, the test writes them to the table.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator

import pytest
from django.conf import settings
from pytest_django.plugin import DjangoDbBlocker

from authapi.models import Client
from config.launcher.options import ROOT
from events.models import EventStream
from identity.models import Connection, OrganizationMember, Tenant, User
from provisioning.models import DeadLetter
from tests.conformance.web_process import WebProcess, web_process
from tests.deadlines import eventually
from tests.factories.admin import browser_of, new_staff
from tests.peers.admin_world import AdminWorld, admin_world
from tests.peers.chromium import PROGRAM, Page, chromium

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(PROGRAM is None, reason="chromium is not installed: make test-peers"),
]

MANUAL = ROOT / "docs" / "reference" / "admin.md"
_MOST_STOPS = 120
# The text by which a user recognizes the focused element.
_FOCUSED = """(() => {
  const it = document.activeElement;
  if (!it || it === document.body) return '';
  const label = it.id && document.querySelector(`label[for="${CSS.escape(it.id)}"]`);
  const text = it.matches('input[type=submit], button') ? it.value || it.textContent : label ? label.textContent : it.textContent;
  return (it.getAttribute('aria-label') || text).replace(/\\s+/g, ' ').trim().replace(/:$/, '');
})()"""


class Keys:
    """A keyboard for one tab. It counts every pressed key except the letters of typed values."""

    def __init__(self, page: Page, base: str) -> None:
        self.page = page
        self._base = base
        self.count = 0

    def start(self) -> None:
        """Open the start page without a focused element, and start counting at zero."""
        self.page.open(f"{self._base}/admin/")
        self.count = 0

    def press(self, key: str) -> None:
        self.page.press(key)
        self.count += 1

    def type(self, text: str) -> None:
        self.page.send("Input.insertText", text=text)

    def to(self, name: str) -> None:
        """Press Tab until the element with this text or label has the focus. Some forms already set the focus on their first field."""
        passed = [self.page.evaluate(_FOCUSED)]
        while passed[-1] != name and len(passed) < _MOST_STOPS:
            self.press("Tab")
            passed.append(self.page.evaluate(_FOCUSED))
        if passed[-1] == name:
            return
        raise AssertionError(f"the keyboard does not reach {name!r}, only {passed} at {self.page.evaluate('location.href')}")

    def skip_navigation(self) -> None:
        self.press("Tab")
        self.press("Enter")
        self.page.until("document.activeElement.id === 'content-start'")

    def follow(self) -> None:
        """Press Enter and wait for the next page."""
        self.page.evaluate("window.isOld = true")
        self.press("Enter")
        self.page.until("!window.isOld && document.readyState === 'complete'", seconds=20)

    def find(self, text: str) -> None:
        """Search with the search field of the admin, and open the first result. The page of results sets the focus on this result."""
        self.press("/")
        self.type(text)
        self.follow()
        # The browser sets the focus of `autofocus` after the page is complete, before it draws the next frame.
        self.page.until("document.activeElement.matches('.hits a')")
        self.follow()

    def go(self, title: str, letters: str) -> None:
        """Open a list: type letters of its title into the filter of the navigation, and press Enter on the entry."""
        self.to("Filter pages")
        self.type(letters)
        self.to(title)
        self.follow()

    def choose(self, name: str) -> None:
        """Move the focus to an element of the content by its text, and press Enter."""
        self.skip_navigation()
        self.to(name)
        self.follow()

    def from_menu(self, name: str) -> None:
        self.skip_navigation()
        self.to("More")
        self.press("Enter")
        self.to(name)
        self.follow()


def find_a_user(keys: Keys, world: AdminWorld) -> Callable[[], bool]:
    keys.find("grace@example.test")
    return lambda: "Grace Hopper" in keys.page.text("h1")


def block_a_user(keys: Keys, world: AdminWorld) -> Callable[[], bool]:
    keys.find("ada@example.test")
    keys.from_menu("Block")
    keys.choose("Block")
    return lambda: User.objects.of(world.tenant.pk).filter(email="ada@example.test", blocked=True).exists()


def add_a_user(keys: Keys, world: AdminWorld) -> Callable[[], bool]:
    keys.go("Users", "users")
    keys.choose("Add user")
    keys.to("Email")
    keys.type("mary@example.test")
    keys.follow()
    return lambda: User.objects.of(world.tenant.pk).filter(email="mary@example.test").exists()


def add_a_member(keys: Keys, world: AdminWorld) -> Callable[[], bool]:
    keys.find("engines")
    keys.choose("Add member")
    keys.page.until("document.activeElement.id === 'id_add-member-user'")
    keys.type("grace@example.test")
    keys.follow()
    return lambda: OrganizationMember.objects.of(world.tenant.pk).filter(user__email="grace@example.test").exists()


def add_a_connection(keys: Keys, world: AdminWorld) -> Callable[[], bool]:
    keys.go("Connections", "connections")
    keys.choose("Add connection")
    keys.to("Name")
    keys.type("customers")
    keys.follow()
    return lambda: Connection.objects.of(world.tenant.pk).filter(name="customers").exists()


def add_a_client(keys: Keys, world: AdminWorld) -> Callable[[], bool]:
    keys.go("Clients", "clients")
    keys.choose("Add client")
    keys.choose("Machine to machine")
    keys.to("Name")
    keys.type("Nightly report")
    keys.follow()
    return lambda: Client.objects.of(world.tenant.pk).filter(name="Nightly report").exists()


def redeliver(keys: Keys, world: AdminWorld) -> Callable[[], bool]:
    keys.go("Dead letters", "dead letters")
    keys.choose(f"Redeliver {world.letter.event_type} of Ada Lovelace (ada@example.test)")
    return lambda: DeadLetter.objects.get(pk=world.letter.pk).redelivered_at is not None


def disable_a_stream(keys: Keys, world: AdminWorld) -> Callable[[], bool]:
    keys.find("Users to the directory")
    keys.from_menu("Disable")
    keys.choose("Disable")
    return lambda: EventStream.objects.of(world.tenant.pk).filter(pk=world.stream.pk, status="disabled").exists()


def see_deliveries_of_a_user(keys: Keys, world: AdminWorld) -> Callable[[], bool]:
    keys.find("alan@example.test")
    keys.choose("Events and deliveries")
    return lambda: "user.created" in keys.page.text("#content")


def replace_a_secret(keys: Keys, world: AdminWorld) -> Callable[[], bool]:
    before = Client.objects.of(world.tenant.pk).get(pk=world.shop.pk).secret_digest
    keys.find("Shop")
    keys.from_menu("Create new secret")
    keys.choose("Create new secret")
    return lambda: Client.objects.of(world.tenant.pk).get(pk=world.shop.pk).secret_digest != before


# Each task by its name, which is in the first column of the table in the manual.
TASKS = {
    "Find a user": find_a_user,
    "Block a user": block_a_user,
    "Add a user": add_a_user,
    "Add a member to an organization": add_a_member,
    "Add a connection": add_a_connection,
    "Add an application": add_a_client,
    "Redeliver a dead letter": redeliver,
    "See the deliveries of a user": see_deliveries_of_a_user,
    "Replace the secret of a client": replace_a_secret,
    "Disable a stream": disable_a_stream,
}


@pytest.fixture(scope="module")
def web(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[WebProcess]:
    with django_db_blocker.unblock(), web_process("uvicorn") as process:
        yield process


def test_the_ten_most_frequent_tasks_need_as_many_key_presses_as_the_manual_says(web: WebProcess, tenant: Tenant) -> None:
    session, base = browser_of(new_staff(tenant)), f"http://127.0.0.1:{web.address[1]}"
    counted = {}
    with admin_world(tenant) as world, chromium() as browser:
        page = browser.page()
        page.show_as(width=1440)
        name = settings.SESSION_COOKIE_NAME
        page.send("Network.setCookie", name=name, value=session.cookies[name].value, url=base, httpOnly=True)
        keys = Keys(page, base)
        for task, perform in TASKS.items():
            keys.start()
            is_done = perform(keys, world)
            eventually(is_done)
            counted[task] = keys.count
            assert page.complaints == [], task
    written = _renewed(counted) if os.environ.get("RENEW_KEYS") else MANUAL.read_text()
    assert {task: _number_in(written, task) for task in TASKS} == counted, json.dumps(counted)


def _row(task: str) -> re.Pattern[str]:
    return re.compile(rf"^(\| {re.escape(task)} \| )(\d+)( \|)", re.MULTILINE)


def _number_in(text: str, task: str) -> int:
    found = _row(task).search(text)
    return int(found[2]) if found else -1


def _renewed(counted: dict[str, int]) -> str:
    text = MANUAL.read_text()
    for task, number in counted.items():
        text = _row(task).sub(rf"\g<1>{number}\g<3>", text)
    MANUAL.write_text(text)
    return text
