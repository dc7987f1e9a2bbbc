"""Logouts in a browser. Frames on the logout page notify applications, and a frame on the page of an application observes the session."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest

from authapi.models import Client, Session
from authapi.services.tenant_settings import update_tenant_settings
from identity.models import Tenant
from tests.conformance.web_process import web_process
from tests.factories.sign_in import PASSWORD, people, person, web_client
from tests.peers.chromium import PROGRAM, Page, chromium
from tests.peers.three_applications import Asked, Listener, Said, listening, speak_oidc

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(PROGRAM is None, reason="chromium is not installed: make test-peers"),
]

EMAIL = "ada@example.test"
OUT = "Please log in."


@dataclass
class World:
    """A service, two applications with their own servers, and a tab of a browser."""

    tenant: Tenant
    page: Page
    service: str
    shop: Listener
    blog: Listener
    clients: dict[str, Client]
    states: dict[str, str] = field(default_factory=dict)

    def reach(self, application: Listener, path: str) -> None:
        self.page.open(f"{application.origin}{path}")
        self.page.until(f"location.origin === {json.dumps(application.origin)} && document.readyState === 'complete'", seconds=20)

    def log_in(self) -> None:
        """Log in at the shop with the password, and then at the blog, which requires no password because a session exists."""
        self.page.open(f"{self.shop.origin}/login")
        self.page.fill("input[autocomplete=username]", EMAIL)
        self.page.fill("input[type=password]", PASSWORD)
        self.page.click("form button[type=submit]")
        self.page.until(f"location.origin === {json.dumps(self.shop.origin)} && document.readyState === 'complete'", seconds=20)
        self.reach(self.blog, "/login")

    def shown(self) -> tuple[str, ...]:
        said = []
        for application in (self.shop, self.blog):
            self.page.open(f"{application.origin}/")
            said.append(self.page.text("p"))
        return tuple(said)

    def watched(self, message: str) -> str:
        """Load the session frame of the service in the open page, send it `message`, and return the message that it sends back."""
        address, text = json.dumps(f"{self.service}/oidc/check_session"), json.dumps(message)
        script = f"""new Promise((resolve) => {{
            const frame = document.createElement("iframe");
            frame.hidden = true;
            frame.src = {address};
            addEventListener("message", (event) => resolve(`${{event.origin}} ${{event.data}}`), {{ once: true }});
            frame.onload = () => frame.contentWindow.postMessage({text}, new URL({address}).origin);
            document.body.append(frame);
        }})"""
        origin, _, answer = str(self.page.evaluate(script)).partition(" ")
        assert origin == self.service
        return answer


@pytest.fixture
def world(tenant: Tenant) -> Iterator[World]:
    update_tenant_settings(tenant_id=tenant.pk, changes={"session_management_supported": True})
    with ExitStack() as stack:
        shop, blog = (stack.enter_context(listening(title)) for title in ("Shop", "Blog"))
        known = {
            each.title: web_client(
                tenant,
                name=each.title,
                redirect_uris=f"{each.origin}/callback",
                post_logout_redirect_uris=f"{each.origin}/",
                settings={"frontchannel_logout_uri": f"{each.origin}/frontchannel"},
            )
            for each in (shop, blog)
        }
        clients = {title: client for title, (client, _) in known.items()}
        person(people(tenant, *clients.values()))
        web = stack.enter_context(web_process("uvicorn", LOCALHOST_TENANT=tenant.pk))
        service = f"http://127.0.0.1:{web.address[1]}"
        made = World(tenant, stack.enter_context(chromium()).page(), service, shop, blog, clients)
        for each in (shop, blog):
            client, secret = known[each.title]
            speak_oidc(each, service=service, client_id=client.client_id, secret=secret)
            _listen_to_the_front_channel(each, made)
        yield made


def _listen_to_the_front_channel(application: Listener, world: World) -> None:
    """Make the application end the user's session when its logout URL is loaded in a frame, and store the session state of each login."""
    finish = application.routes["/callback"]

    def callback(asked: Asked) -> Said:
        world.states[application.title] = asked.fields["session_state"]
        return finish(asked)

    def log_out(asked: Asked) -> Said:
        assert asked.fields["iss"] == f"{world.service}/"
        # The browser sends the cookie of the application from the frame, because all pages of this test are on one site.
        assert asked.cookie == asked.fields["sid"]
        application.people.pop(asked.fields["sid"])
        return Said(page="Bye.")

    def begin(asked: Asked) -> Said:
        # The application does not end its own session here. Only the frame on the logout page ends the session.
        return Said(location=f"{world.service}/v2/logout?client_id={world.clients[application.title].client_id}")

    application.routes |= {"/callback": callback, "/frontchannel": log_out, "/logout": begin}


@pytest.mark.parametrize("has_script", [True, False], ids=["script", "plain"])
def test_a_logout_at_one_application_logs_the_user_out_of_both_applications(world: World, *, has_script: bool) -> None:
    world.log_in()
    assert world.shown() == (EMAIL, EMAIL)
    world.page.without_script(is_off=not has_script)
    world.page.open(f"{world.shop.origin}/logout")
    world.page.until(f"location.origin === {json.dumps(world.shop.origin)}", seconds=20)
    world.page.without_script(is_off=False)
    assert world.shown() == (OUT, OUT)
    assert [each.failures for each in (world.shop, world.blog)] == [[], []]
    assert not Session.objects.of(world.tenant.pk).exists()
    assert not world.page.complaints


def test_only_pages_of_the_application_detect_a_change_of_the_session(world: World) -> None:
    world.log_in()
    message = f"{world.clients['Shop'].client_id} {world.states['Shop']}"
    world.page.open(f"{world.shop.origin}/")
    assert world.watched(message) == "unchanged"
    assert world.watched("made up") == "error"
    assert world.watched(f"{world.clients['Blog'].client_id} {world.states['Shop']}") == "changed"
    world.page.open(f"{world.blog.origin}/")
    assert world.watched(message) == "changed"
    world.page.open(f"{world.blog.origin}/logout")
    world.page.until(f"location.origin === {json.dumps(world.blog.origin)}", seconds=20)
    world.page.open(f"{world.shop.origin}/")
    assert world.watched(message) == "changed"
