"""The move of a tenant between two installations with their own servers and encryption keys. Users and clients notice only a pause."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import requests
from django.conf import settings
from django.db import connection, connections
from django.test import override_settings

from config.settings.database_url import database_settings
from events.log.numbering import number_tenant
from events.models import EventStream
from identity.factors.user_factors import use_recovery_code
from identity.hosts import forget_hosts
from identity.models import Tenant, User
from identity.moving import importing, leaving
from identity.services.users import update_user
from provisioning.dead_letters import redelivery
from provisioning.engine import delivering, dispatch
from provisioning.models import DeadLetter, Lane
from provisioning.runs.failures import DataFailure
from tests.authapi.browser import Browser, Page
from tests.authapi.factors.walks import Walk, app_code, give_app, set_factors
from tests.authapi.login.conftest import Login
from tests.conformance.reader import Subscriber
from tests.conformance.target import make_target
from tests.conformance.web_process import WebProcess, web_process
from tests.factories.sign_in import CALLBACK, people, person, web_client
from tests.faults.world import World
from tests.identity.moving.installations import LISTS, exported, new_keys, quiet
from tests.provisioning.engine.conftest import Recorder, recorder
from tests.provisioning.engine.logs import make_stream

__all__ = ["recorder"]
COUNT = 6


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[World]:
    """Start the servers of the target: another PostgreSQL server, and another server that speaks the protocol of Redis."""
    world = World()
    yield world
    world.close()


class OverHttp(Browser):
    """A browser that sends its requests to a web process over HTTP."""

    def at(self, web: WebProcess) -> OverHttp:
        self.port = web.address[1]
        return self

    def send(self, method: str, target: str, *, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Page:
        sent = {"Host": self.host, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", **(headers or {})}
        if self.cookies:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        answer = requests.request(
            method, f"http://127.0.0.1:{self.port}{target}", data=body, headers=sent, allow_redirects=False, timeout=30
        )
        self.cookies |= dict(answer.cookies)
        return Page(answer.status_code, {name.lower(): value for name, value in answer.headers.items()}, [], answer.content)


@dataclass
class Person:
    """A user with a password and an authenticator app, who logs in at an application before and after the move."""

    walk: Walk
    client_id: str
    client_secret: str
    app_secret: str
    recovery_code: str
    tokens: dict[str, Any] = field(default_factory=dict)

    def at(self, web: WebProcess) -> Person:
        browser = self.walk.browser
        assert isinstance(browser, OverHttp)
        browser.at(web)
        self.port, self.web = web.address[1], web
        return self

    def call(self, method: str, path: str, *, bearer: str = "", form: dict[str, str] | None = None) -> requests.Response:
        headers = {"Host": self.walk.browser.host, **({"Authorization": f"Bearer {bearer}"} if bearer else {})}
        return requests.request(method, f"http://127.0.0.1:{self.port}{path}", data=form, headers=headers, timeout=30)

    def log_in(self, *, steps: int = 0) -> str:
        """Log in with the password and a code of the app. Return the authorization code for the application."""
        page = self.walk.to_second(scope="openid offline_access")
        assert page.status == 200, page.text
        answer = self.walk.give(page, code=app_code(self.app_secret, steps=steps))
        assert "code" in answer.answer, answer.text
        return answer.answer["code"]

    def redeem(self, code: str) -> None:
        self._take(grant_type="authorization_code", code=code, redirect_uri=CALLBACK)

    def refresh(self) -> None:
        self._take(grant_type="refresh_token", refresh_token=str(self.tokens["refresh_token"]))

    def _take(self, **form: str) -> None:
        answer = self.call("POST", "/oauth/token", form={**form, "client_id": self.client_id, "client_secret": self.client_secret})
        assert answer.status_code == 200, answer.text
        self.tokens |= answer.json()


def enrolled(tenant: Tenant) -> Person:
    client, secret = web_client(tenant)
    database = people(tenant, client)
    user = person(database)
    set_factors(tenant, "otp")
    app_secret, recovery_code = give_app(user)
    login = Login(tenant, client, database, user, OverHttp(tenant))
    return Person(Walk(login), client.client_id, secret, app_secret, recovery_code)


@contextmanager
def at_target(world: World, keys: dict[str, dict[str, str]]) -> Iterator[None]:
    """Run the block with the database and the keys of the target."""
    usual = dict(connection.settings_dict)
    connections.close_all()
    connection.settings_dict.update(database_settings(world.address(), pool_size=0))
    forget_hosts()
    try:
        with override_settings(**keys):
            yield
    finally:
        connections.close_all()
        connection.settings_dict.clear()
        connection.settings_dict.update(usual)
        forget_hosts()


def as_variables(keys: dict[str, dict[str, str]]) -> dict[str, str]:
    return {name: ",".join(f"{key}:{secret}" for key, secret in pairs.items()) for name, pairs in keys.items()}


def change(user: User, *names: str) -> None:
    for name in names:
        update_user(tenant_id=user.tenant_id, user_id=user.user_id, changes={"nickname": name})
    number_tenant(user.tenant_id)


def nicknames(stream: Subscriber, count: int) -> tuple[list[str], str | None]:
    """Read `count` events. Return the nickname in each event, and the cursor of the last event."""
    blocks = stream.events(count)
    return [block.message["event"]["data"]["object"]["nickname"] for block in blocks], blocks[-1].id


def with_failures(tenant: Tenant, recorder: Recorder, user: User) -> tuple[EventStream, DeadLetter, str]:
    """Create a stream with a dead letter and with deliveries that wait. Return the stream, the dead letter and the key of the lane."""
    stream = make_stream(tenant, subscriptions=["user.updated"], position=0)
    key = f"user:{user.user_id}"
    dispatch.dispatch_tenant(tenant.pk)
    recorder.answers[key] = [DataFailure("refused", status=400)]
    with override_settings(DELIVERY_RETRY_DELAYS=[]):
        delivering.deliver_lane(stream.pk, key)
    letter = DeadLetter.objects.get(stream_id=stream.pk)
    change(user, "waits")
    dispatch.dispatch_tenant(tenant.pk)
    assert Lane.objects.filter(stream_id=stream.pk, key=key).exists()
    recorder.taken.clear()
    return stream, letter, key


def test_users_and_clients_notice_only_a_pause(tenant: Tenant, elsewhere: World, recorder: Recorder, tmp_path: Path) -> None:
    own = new_keys("e")
    keys = {name: own[name] if name == "ENCRYPTION_KEYS" else {**own[name], **getattr(settings, name)} for name in LISTS}
    ada = enrolled(tenant)
    user = ada.walk.at.user
    change(user, *(f"name {number}" for number in range(COUNT)))
    stream, letter, key = with_failures(tenant, recorder, user)

    with web_process("uvicorn") as source:
        target = make_target(tenant, source.address)
        token = target.token()
        with target.subscribe({"from_timestamp": "2020-01-01T00:00:00Z", "event_type": "user.updated"}, token=token) as subscriber:
            subscriber.opened()
            seen, cursor = nicknames(subscriber, 3)
        ada.at(source).redeem(ada.log_in())
        assert ada.call("GET", "/userinfo", bearer=ada.tokens["access_token"]).status_code == 200
        before = ada.tokens["access_token"]

        archive = exported(tenant, tmp_path / "archive")
        forget_hosts()
        paused = ada.call("GET", "/userinfo", bearer=before)
        while paused.status_code == 200:
            paused = ada.call("GET", "/userinfo", bearer=before)
        assert (paused.status_code, "Retry-After" in paused.headers) == (503, True)

    with at_target(elsewhere, keys):
        importing.import_tenant(archive, progress=quiet)
    receipt = leaving.hand_over(archive)
    assert dispatch.dispatch_tenant(tenant.pk) == []
    delivering.deliver_lane(stream.pk, key)
    assert recorder.taken == []

    with at_target(elsewhere, keys), elsewhere.web(**as_variables(keys)) as web:
        importing.open_tenant(tenant_id=tenant.pk, receipt=receipt)
        ada.at(web)
        # The session of the browser is still valid, so the application gets a code, and no page is shown.
        silent = ada.walk.again(scope="openid", prompt="none")
        assert "code" in silent.answer, silent.text
        assert ada.call("GET", "/userinfo", bearer=before).json()["sub"] == user.user_id
        ada.refresh()
        assert ada.call("GET", "/userinfo", bearer=ada.tokens["access_token"]).status_code == 200
        # In a new browser, the user must enter the password and a code of the app.
        ada.walk.browser.cookies.clear()
        ada.redeem(ada.log_in(steps=1))
        assert use_recovery_code(tenant_id=tenant.pk, user_id=user.user_id, code=ada.recovery_code)

        moved = subscribing(tenant, web)
        with moved(token, {"from": cursor or "", "event_type": "user.updated"}) as subscriber:
            subscriber.opened()
            rest, _ = nicknames(subscriber, COUNT + 2 - 3)
            present = User.objects.of(tenant.pk).get(user_id=user.user_id)
            change(present, "after the move")
            last, _ = nicknames(subscriber, 1)
        # The first event is the enrollment of the authenticator app, when the nickname is still "ada".
        names = ["ada", *(f"name {number}" for number in range(COUNT))]
        assert [*seen, *rest, *last] == [*names, "waits", "after the move"]

        # The two waiting events are delivered once. The event of the dead letter is delivered only after its redelivery.
        recorder.taken.clear()
        dispatch.dispatch_tenant(tenant.pk)
        delivering.deliver_lane(stream.pk, key)
        ids = recorder.event_ids
        assert len(ids) == len(set(ids)) == 2
        assert letter.event_id not in ids
        here = DeadLetter.objects.get(event_id=letter.event_id)
        order = redelivery.Order("ada@example.test", reason="moved", force=True)
        assert redelivery.redeliver_letters(tenant_id=tenant.pk, letter_ids=[here.pk], order=order).count == 1
        delivering.deliver_lane(stream.pk, key)
        assert recorder.event_ids[-1] == letter.event_id


def subscribing(tenant: Tenant, web: WebProcess) -> Any:
    """Return a function that opens an event stream at the web process of the target, with a token and parameters."""

    def subscribe(token: str, query: dict[str, Any]) -> Subscriber:
        headers = {"Host": f"{tenant.pk}.example.test", "Authorization": f"Bearer {token}", "Accept": "text/event-stream"}
        return Subscriber(web.address, headers=headers, query=query)

    return subscribe
