"""`POST /oauth/par` and logins with pushed requests (RFC 9126), including attacks."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine

from authapi.models import ClientCredential, PushedRequest
from authapi.protocols.oauth.pushed import PREFIX
from authapi.services.client_credentials import NewCredential, create_client_with_credentials
from authapi.services.clients import create_client, update_client
from authapi.services.tenant_settings import update_tenant_settings
from authapi.views import HOT_ENDPOINTS
from authapi.views.pushed_requests import MAX_BYTES
from identity.models import Tenant
from identity.services.failures import Invalid
from identity.services.tenants import create_tenant
from tests.authapi.asgi_client import FORM, send
from tests.authapi.assertions import signer
from tests.authapi.browser import Browser, Page
from tests.authapi.certificates import SUBJECT_LINES, certificate, edge_key, forwarded
from tests.authapi.login.conftest import Login
from tests.authapi.memory import forget_all
from tests.authapi.pushing import PAR, Pusher
from tests.authapi.token_forms import basic
from tests.factories.sign_in import CALLBACK, people, person, web_client

NOON = datetime(2031, 5, 1, 12, 0, tzinfo=UTC)


@pytest.fixture
def pusher(tenant: Tenant) -> Pusher:
    client, secret = web_client(tenant)
    return Pusher(tenant, client, secret)


@pytest.fixture
def login(tenant: Tenant, pusher: Pusher) -> Login:
    connection = people(tenant, pusher.client)
    return Login(tenant, pusher.client, connection, person(connection), Browser(tenant))


def change(pusher: Pusher, **settings: Any) -> None:
    update_client(tenant_id=pusher.tenant.pk, client_id=pusher.client.client_id, changes={"settings": settings})
    forget_all()


def go(login: Login, request_uri: str, **changes: Any) -> Page:
    """Send the browser to `/authorize` with only a handle and the client id."""
    sent = {"client_id": login.client.client_id, "request_uri": request_uri, **changes}
    return login.browser.get("/authorize", {name: value for name, value in sent.items() if value is not None})


def told(page: Page) -> str:
    """Return the error text of a page that is not a redirect."""
    assert (page.status, "location" in page.headers) == (400, False)
    return page.text


# --- Pushing --------------------------------------------------------------------------------------------------------------


def test_a_request_is_stored_encrypted_for_a_short_time(pusher: Pusher) -> None:
    answer = pusher.push(login_hint="ada@example.test")
    assert answer.status == 201
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store"
    assert "www-authenticate" not in answer.headers
    members = answer.json()
    assert members.keys() == {"request_uri", "expires_in"}
    assert (members["request_uri"].startswith(PREFIX), members["expires_in"]) == (True, 30)
    row = PushedRequest.objects.of(pusher.tenant.pk).get()
    kept = f"{row.digest} {row.sealed_parameters}"
    assert not any(text in kept for text in ("ada@example.test", pusher.secret, members["request_uri"].removeprefix(PREFIX), CALLBACK))


def test_json_is_accepted_like_a_form(pusher: Pusher) -> None:
    assert pusher.push(as_json=True, max_age=60, response_mode=None).status == 201


def test_the_client_can_set_the_lifetime_of_its_handles(pusher: Pusher) -> None:
    change(pusher, par_request_expiry=600)
    assert pusher.push().json()["expires_in"] == 600


@pytest.mark.parametrize(
    ("changes", "status", "error", "text"),
    [
        ({"client_secret": "wrong"}, 401, "invalid_client", "Unauthorized"),
        ({"client_secret": None}, 401, "invalid_client", "Unauthorized"),
        ({"client_id": None, "client_secret": None}, 401, "invalid_client", "Client authentication is missing."),
        ({"redirect_uri": "https://evil.test/"}, 400, "invalid_request", "Callback URL mismatch."),
        ({"request_uri": PREFIX + "x"}, 400, "invalid_request", "request_uri cannot be pushed"),
        ({"request_uri": "https://evil.test/request"}, 400, "invalid_request", "request_uri cannot be pushed"),
        ({"response_type": None}, 400, "invalid_request", "response_type"),
        ({"response_type": "telepathy"}, 400, "unsupported_response_type", "telepathy"),
        ({"response_type": "token"}, 403, "unauthorized_client", "implicit"),
        ({"code_challenge": "x", "code_challenge_method": "S256"}, 400, "invalid_request", "code_challenge"),
        ({"prompt": "none login"}, 400, "invalid_request", "prompt none excludes other prompts"),
        ({"audience": "urn:unknown"}, 403, "access_denied", "urn:unknown"),
        ({"state": "a\x00b"}, 400, "invalid_request", "NUL"),
        ({f"ext-{number}": "x" for number in range(11)}, 400, "invalid_request", "At most 10 parameters"),
    ],
)
def test_a_request_that_cannot_be_granted_is_refused_immediately(
    pusher: Pusher, changes: dict[str, Any], status: int, error: str, text: str
) -> None:
    answer = pusher.push(**changes)
    assert (answer.status, answer.json()["error"]) == (status, error)
    assert text in answer.json()["error_description"]
    assert "www-authenticate" not in answer.headers
    assert not PushedRequest.objects.of(pusher.tenant.pk).exists()


def test_up_to_ten_custom_parameters_of_the_client_are_kept(login: Login, pusher: Pusher) -> None:
    own: dict[str, Any] = {f"ext-{number}": "x" for number in range(10)}
    assert pusher.push(**own).status == 201


def test_a_repeated_parameter_is_refused(pusher: Pusher) -> None:
    body = "&".join(f"{name}={value}" for name, value in pusher.form(scope="openid").items()) + "&scope=openid%20email"
    host = f"{pusher.tenant.pk}.example.test"
    answer = send(HOT_ENDPOINTS[PAR], "POST", host=host, headers={"Content-Type": FORM}, chunks=(body.encode(),))
    assert (answer.status, answer.json()["error_description"]) == (400, "The parameter scope is repeated.")


def test_a_request_of_more_than_ten_kilobytes_is_refused(pusher: Pusher) -> None:
    frame = len("&".join(f"{name}={value}" for name, value in pusher.form(state="").items()).encode()) + 60
    assert pusher.push(state="s" * (MAX_BYTES - frame)).status == 201
    answer = pusher.push(state="s" * MAX_BYTES)
    assert (answer.status, answer.json()["error_description"]) == (413, "The body is larger than 10240 bytes.")


def test_a_client_without_authentication_cannot_push(tenant: Tenant) -> None:
    client, _ = web_client(tenant, token_endpoint_auth_method="none")
    answer = Pusher(tenant, client, "").push(client_secret=None)
    assert (answer.status, answer.json()["error"]) == (403, "unauthorized_client")


def test_a_tenant_that_has_switched_pushed_requests_off_refuses_them(pusher: Pusher) -> None:
    update_tenant_settings(tenant_id=pusher.tenant.pk, changes={"pushed_authorization_requests_supported": False})
    forget_all()
    answer = pusher.push()
    assert (answer.status, answer.json()["error"]) == (404, "endpoint_disabled")


# --- Authentication methods -------------------------------------------------------------------------------------------------


def test_a_secret_in_the_header_authenticates(tenant: Tenant) -> None:
    client, secret = web_client(tenant, token_endpoint_auth_method="client_secret_basic")
    pusher = Pusher(tenant, client, secret)
    assert pusher.push(client_secret=None, headers=basic(client.client_id, secret)).status == 201
    assert pusher.push(client_secret=None, headers=basic(client.client_id, "wrong")).status == 401


def test_a_signed_assertion_authenticates_and_is_not_kept_as_a_parameter(tenant: Tenant) -> None:
    signing = signer(tenant)
    changes = {"grant_types": ["authorization_code"], "redirect_uris": CALLBACK}
    update_client(tenant_id=tenant.pk, client_id=signing.registered.client_id, changes=changes)
    forget_all()
    pusher = Pusher(tenant, signing.registered.client, "")
    assertion = signing.assertion()
    proof = {name: signing.form(assertion)[name] for name in ("client_assertion", "client_assertion_type")}
    assert pusher.push(client_secret=None, **proof).status == 201
    assert pusher.push(client_secret=None, **proof).status == 401, "the assertion was accepted twice"


def test_a_certificate_authenticates(tenant: Tenant) -> None:
    new = NewCredential(type=ClientCredential.Type.CERT_SUBJECT_DN, subject_dn=SUBJECT_LINES)
    fields: dict[str, Any] = {"grant_types": ["authorization_code"], "redirect_uris": CALLBACK}
    client = create_client_with_credentials(tenant_id=tenant.pk, name="Edge", methods={"tls_client_auth": [new]}, **fields)
    key, pusher = edge_key(tenant), Pusher(tenant, client, "")
    assert pusher.push(client_secret=None, headers=forwarded(key, certificate())).status == 201
    assert pusher.push(client_secret=None, headers=forwarded("wrong", certificate())).status == 401


# --- Logins with a pushed request ---------------------------------------------------------------------------------------------


def test_a_login_uses_only_the_pushed_parameters(login: Login, pusher: Pusher) -> None:
    uri = pusher.handle(scope="openid email")
    beside = {"redirect_uri": "https://evil.test/", "state": "other", "scope": "openid profile", "response_type": "token"}
    answer = login.log_in(go(login, uri, **beside))
    assert answer.location.startswith(CALLBACK)
    assert answer.answer["state"] == "pushed-state"
    assert "code" in answer.answer


def test_a_completed_login_uses_up_the_handle_but_loading_the_page_does_not(login: Login, pusher: Pusher) -> None:
    uri = pusher.handle()
    first, second = go(login, uri), go(login, uri)
    assert "code" in login.log_in(second).answer
    assert "expired or was already answered" in told(go(login, uri))
    # The other window still shows the login page. A login there would be a second answer to the same request.
    late = login.log_in(first)
    assert late.answer["error"] == "invalid_request_uri"
    assert late.location.startswith(CALLBACK)


def test_an_error_that_is_returned_to_the_client_uses_up_the_handle_too(login: Login, pusher: Pusher) -> None:
    uri = pusher.handle(prompt="none")
    assert go(login, uri).answer["error"] == "login_required"
    assert "invalid_request_uri" in told(go(login, uri))


def test_a_login_can_be_finished_after_its_handle_has_expired(login: Login, pusher: Pusher) -> None:
    with time_machine.travel(NOON, tick=False) as clock:
        page = login.browser.follow(go(login, pusher.handle()))
        clock.shift(timedelta(minutes=5))
        assert "code" in login.log_in(page).answer


def test_an_expired_handle_is_refused(login: Login, pusher: Pusher) -> None:
    with time_machine.travel(NOON, tick=False) as clock:
        uri = pusher.handle()
        clock.shift(timedelta(seconds=31))
        assert "invalid_request_uri" in told(go(login, uri))


def test_a_handle_of_another_client_is_refused(login: Login, pusher: Pusher) -> None:
    other, secret = web_client(pusher.tenant, name="Other")
    assert "invalid_request_uri" in told(go(login, Pusher(pusher.tenant, other, secret).handle()))
    assert "invalid_request_uri" in told(go(login, pusher.handle(), client_id=other.client_id))
    assert "client_id" in told(go(login, pusher.handle(), client_id=None))


def test_a_handle_of_another_tenant_is_refused(login: Login, pusher: Pusher) -> None:
    name = f"t-{secrets.token_hex(6)}"
    other = create_tenant(tenant_id=name, name=name, host=f"{name}.example.test")
    client, secret = web_client(other)
    uri = Pusher(other, client, secret).handle()
    assert "invalid_request_uri" in told(go(login, uri))


@pytest.mark.parametrize("uri", [PREFIX, PREFIX + "x", PREFIX + "x" * 5000])
def test_an_unknown_handle_is_refused(login: Login, uri: str) -> None:
    assert "invalid_request_uri" in told(go(login, uri))


def test_a_request_object_at_an_external_url_is_never_fetched(login: Login) -> None:
    page = login.ask(request_uri="https://evil.test/request.jwt")
    assert page.answer["error"] == "request_uri_not_supported"


def test_a_callback_that_was_removed_after_the_push_is_refused(login: Login, pusher: Pusher) -> None:
    uri = pusher.handle()
    changes = {"redirect_uris": "https://new.example.test/"}
    update_client(tenant_id=pusher.tenant.pk, client_id=pusher.client.client_id, changes=changes)
    forget_all()
    assert "Callback URL mismatch" in told(go(login, uri))


# --- Required pushing -----------------------------------------------------------------------------------------------------------


def test_a_client_that_must_push_cannot_send_parameters_in_the_url(login: Login, pusher: Pusher) -> None:
    change(pusher, require_pushed_authorization_requests=True)
    refused = login.ask().answer
    assert (refused["error"], refused["state"]) == ("invalid_request", "the-state")
    assert "must push" in refused["error_description"]
    assert "code" in login.log_in(go(login, pusher.handle())).answer


def test_a_request_parameter_cannot_mark_a_request_as_pushed(login: Login, pusher: Pusher) -> None:
    change(pusher, require_pushed_authorization_requests=True)
    assert login.ask(**{":pushed": "-", "pushed": "1"}).answer["error"] == "invalid_request"


def test_a_tenant_can_require_pushing_from_every_client(login: Login, pusher: Pusher) -> None:
    update_tenant_settings(tenant_id=pusher.tenant.pk, changes={"require_pushed_authorization_requests": True})
    forget_all()
    assert login.ask().answer["error"] == "invalid_request"
    assert "code" in login.log_in(go(login, pusher.handle())).answer


def test_pushing_cannot_be_required_of_a_client_that_cannot_push(tenant: Tenant) -> None:
    settings = {"require_pushed_authorization_requests": True}
    grants = ["authorization_code"]
    with pytest.raises(Invalid):
        create_client(tenant_id=tenant.pk, name="spa", token_endpoint_auth_method="none", grant_types=grants, settings=settings)
