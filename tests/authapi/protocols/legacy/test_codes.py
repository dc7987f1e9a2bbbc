"""Codes of passwordless connections at `/co/authenticate` (credential `otp`) and `/oauth/ro` (connections `email` and `sms`)."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import pytest
import time_machine

from authapi.accounts.passwordless.addresses import Channel, read_address
from authapi.accounts.passwordless.limits import Place
from authapi.accounts.passwordless.starting import Wanted, start
from authapi.login.cookies import BROWSER, cookie_name
from authapi.models import LoginTicket, RefreshToken, Session, SignIn
from authapi.protocols.legacy.one_time_codes import CREDENTIAL_TYPE
from authapi.protocols.legacy.opting_in import PASSWORD as PASSWORD_GRANT
from foundation.tenancy import tenant_bound
from identity.models import Connection, User
from identity.services.connections import create_connection, update_connection
from identity.services.users import create_user, update_user
from tests.authapi.asgi_client import Received
from tests.authapi.forging import decoded
from tests.authapi.memory import forget_all
from tests.authapi.passwordless.conftest import ADA, NUMBER, set_options
from tests.authapi.passwordless.messages import last_code, wrong
from tests.authapi.protocols.legacy.conftest import CALLBACK, GRANTS, ORIGIN, OldClient, change, refusal
from tests.authapi.protocols.legacy.test_cross_origin import arrive, cookie_from
from tests.factories.authapi import host_of
from tests.factories.sign_in import web_client

WRONG = (401, "invalid_user_password", "Wrong email or password.")
WRONG_OF_FORM = {
    "email": (401, "access_denied", "Wrong email or verification code."),
    "sms": (401, "access_denied", "Wrong phone number or verification code."),
}
ADDRESSES = {"email": ADA, "sms": NUMBER}


@dataclass
class Coded:
    """An old client whose users receive codes."""

    old: OldClient
    email: Connection
    sms: Connection

    def code(self, kind: str = "email", **changes: Any) -> str:
        """Send a code to the user, and return the code."""
        connection = self.email if kind == "email" else self.sms
        address = read_address(Channel(kind), ADDRESSES[kind])
        with tenant_bound(self.old.tenant.pk):
            start(Wanted(host_of(self.old.tenant), changes.pop("client", self.old.client), connection, address, Place("192.0.2.1")))
        return last_code(self.old.tenant.pk)

    def exchange(self, code: str, kind: str = "email", *, address: str = "192.0.2.1", **changes: Any) -> Received:
        form = {"grant_type": "password", "client_id": self.old.client.client_id, "connection": kind, "username": ADDRESSES[kind]}
        return self.old.ask("/oauth/ro", {**form, "password": code, "scope": "openid", **changes}, address=address)

    def authenticate(self, code: str, kind: str = "email", **changes: Any) -> Received:
        return self.old.authenticate(
            **{"credential_type": CREDENTIAL_TYPE, "realm": kind, "username": ADDRESSES[kind], "password": None, "otp": code, **changes}
        )

    def users(self) -> list[User]:
        return list(User.objects.of(self.old.tenant.pk).exclude(pk=self.old.user.pk))


@pytest.fixture
def coded(old: OldClient, settings: Any) -> Coded:
    settings.SMS_SENDER = {"kind": "console"}
    enabled = [old.client.client_id]
    made = [create_connection(tenant_id=old.tenant.pk, name=kind, strategy=kind, enabled_clients=enabled, options={}) for kind in ADDRESSES]
    forget_all()
    return Coded(old, *made)


@pytest.fixture(params=["email", "sms"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def other_client(coded: Coded) -> Any:
    """Create another old client of the tenant, whose users have the same connections."""
    settings = {"cross_origin_authentication": True, "web_origins": [ORIGIN]}
    other, _ = web_client(coded.old.tenant, grant_types=list(GRANTS), redirect_uris=CALLBACK, settings=settings)
    enabled = [coded.old.client.client_id, other.client_id]
    for connection in (coded.email, coded.sms):
        update_connection(tenant_id=coded.old.tenant.pk, connection_id=connection.pk, changes={"enabled_clients": enabled})
    forget_all()
    return other


# --- /oauth/ro --------------------------------------------------------------------------------------------------------


def test_a_wrong_code_and_an_unknown_address_get_the_same_refusal(coded: Coded, kind: str) -> None:
    code = coded.code(kind)
    assert refusal(coded.exchange(wrong(code), kind)) == WRONG
    assert refusal(coded.exchange(code, kind, username="eve@example.test" if kind == "email" else "+4915199999999")) == WRONG
    assert refusal(coded.exchange(code, kind, username="no address")) == WRONG
    assert coded.users() == []


def test_a_code_is_accepted_once_and_its_token_contains_the_method(coded: Coded, kind: str) -> None:
    code = coded.code(kind)
    members = coded.exchange(code, kind).json()
    [user] = coded.users()
    claims = decoded(members["id_token"])[1]
    assert (claims["sub"], claims["amr"], members["token_type"]) == (user.user_id, ["otp", kind], "bearer")
    assert refusal(coded.exchange(code, kind)) == WRONG
    types = SignIn.objects.of(coded.old.tenant.pk).order_by("created_at", "pk").values_list("type", flat=True)
    assert [one for one in types if one in ("s", "f")] == ["s", "f"]


def test_an_expired_code_is_refused(coded: Coded, kind: str) -> None:
    code = coded.code(kind)
    with time_machine.travel(time.time() + 301):
        assert refusal(coded.exchange(code, kind)) == WRONG
    assert coded.users() == []


def test_a_code_that_another_client_requested_is_refused(coded: Coded, kind: str) -> None:
    other = other_client(coded)
    code = coded.code(kind, client=other)
    assert refusal(coded.exchange(code, kind)) == WRONG
    assert refusal(coded.authenticate(code, kind)) == WRONG_OF_FORM[kind]
    assert coded.exchange(code, kind, client_id=other.client_id).status == 200


def test_a_connection_that_is_not_enabled_for_the_client_refuses_codes(coded: Coded, kind: str) -> None:
    code = coded.code(kind)
    for connection in (coded.email, coded.sms):
        update_connection(tenant_id=coded.old.tenant.pk, connection_id=connection.pk, changes={"enabled_clients": []})
    forget_all()
    assert refusal(coded.exchange(code, kind)) == (400, "invalid_request", "the connection was disabled")
    assert refusal(coded.authenticate(code, kind)) == (403, "access_denied", "Unknown or invalid realm")


def test_wrong_codes_are_counted_over_both_endpoints(coded: Coded, kind: str) -> None:
    code = coded.code(kind)
    for guess in range(1, 6):
        ask = coded.exchange if guess % 2 else coded.authenticate
        assert ask(wrong(code, by=guess), kind).status == 401
    assert refusal(coded.exchange(code, kind))[:2] == (429, "too_many_attempts")
    assert refusal(coded.authenticate(code, kind))[:2] == (429, "too_many_attempts")
    # The code is still accepted from an IP address without wrong guesses.
    assert coded.exchange(code, kind, address="198.51.100.9").status == 200


def test_the_refusal_of_too_many_guesses_does_not_depend_on_the_code(coded: Coded) -> None:
    code = coded.code()
    for guess in range(1, 6):
        coded.exchange(wrong(code, by=guess))
    assert coded.exchange(code).body == coded.exchange(wrong(code)).body


def test_a_blocked_user_is_reported_only_with_the_right_code(coded: Coded) -> None:
    user = create_user(tenant_id=coded.old.tenant.pk, connection=coded.email, email=ADA)
    update_user(tenant_id=coded.old.tenant.pk, user_id=user.user_id, changes={"blocked": True})
    code = coded.code()
    assert refusal(coded.exchange(wrong(code))) == WRONG
    assert refusal(coded.exchange(code)) == (401, "unauthorized", "user is blocked")


def test_no_account_is_created_if_the_connection_forbids_it(coded: Coded) -> None:
    code = coded.code()
    set_options(coded.email, disable_signup=True)
    assert refusal(coded.exchange(code)) == WRONG
    assert coded.users() == []


def test_a_client_without_the_grant_does_not_use_up_a_code(coded: Coded) -> None:
    code = coded.code()
    change(coded.old.client, grant_types=[grant for grant in GRANTS if grant != PASSWORD_GRANT])
    assert refusal(coded.exchange(code))[:2] == (403, "unauthorized_client")
    change(coded.old.client, grant_types=list(GRANTS))
    assert coded.exchange(code).status == 200


def test_a_client_that_requires_an_organization_does_not_use_up_a_code(coded: Coded) -> None:
    code = coded.code()
    coded.old.set(settings={"organization_usage": "require"})
    assert refusal(coded.exchange(code)) == (400, "invalid_request", "parameter organization is required for this client")
    coded.old.set(settings={"organization_usage": None})
    assert coded.exchange(code).status == 200


def test_a_request_can_name_the_kind_of_a_connection_instead_of_its_name(coded: Coded) -> None:
    update: dict[str, Any] = {"enabled_clients": []}
    update_connection(tenant_id=coded.old.tenant.pk, connection_id=coded.email.pk, changes=update)
    enabled = [coded.old.client.client_id]
    coded.email = create_connection(tenant_id=coded.old.tenant.pk, name="mails", strategy="email", enabled_clients=enabled, options={})
    forget_all()
    assert coded.exchange(coded.code()).status == 200
    assert coded.exchange(coded.code(), connection="mails").status == 200


def test_a_code_is_not_accepted_as_the_password_of_a_database_connection(coded: Coded) -> None:
    code = coded.code()
    assert refusal(coded.exchange(code, connection=coded.old.connection.name)) == WRONG
    assert coded.exchange(code).status == 200


def test_the_refresh_token_of_a_code_has_the_name_of_the_device(coded: Coded) -> None:
    members = coded.exchange(coded.code(), scope="openid offline_access", device="Ada's phone").json()
    assert members["refresh_token"]
    assert RefreshToken.objects.of(coded.old.tenant.pk).get().initial_user_agent == "Ada's phone"


# --- /co/authenticate -------------------------------------------------------------------------------------------------


def test_a_code_is_exchanged_for_a_ticket_that_logs_in_the_same_browser(coded: Coded, kind: str) -> None:
    code = coded.code(kind)
    answer = coded.authenticate(code, kind)
    assert answer.json().keys() == {"login_ticket", "co_id", "co_verifier"}
    coded.old.browser.cookies[cookie_name(BROWSER)] = cookie_from(answer)
    page = arrive(coded.old, answer.json()["login_ticket"], realm=kind)
    [user] = coded.users()
    claims = decoded(page.answer["id_token"])[1]
    assert (claims["sub"], claims["amr"]) == (user.user_id, ["otp", kind])
    assert Session.objects.of(coded.old.tenant.pk).get().user_id == user.pk
    assert refusal(coded.authenticate(code, kind)) == WRONG_OF_FORM[kind]


def test_the_script_can_read_why_a_wrong_or_expired_code_gets_no_ticket(coded: Coded, kind: str) -> None:
    code = coded.code(kind)
    answer = coded.authenticate(wrong(code), kind)
    assert refusal(answer) == WRONG_OF_FORM[kind]
    assert (answer.headers["access-control-allow-origin"], "set-cookie" in answer.headers) == (ORIGIN, False)
    with time_machine.travel(time.time() + 301):
        assert refusal(coded.authenticate(code, kind)) == WRONG_OF_FORM[kind]
    assert not LoginTicket.objects.of(coded.old.tenant.pk).exists()


def test_a_page_of_another_origin_does_not_use_up_a_code(coded: Coded) -> None:
    code = coded.code()
    assert refusal(coded.authenticate(code, origin="https://evil.example"))[:2] == (403, "access_denied")
    assert coded.authenticate(code).status == 200


@pytest.mark.parametrize("missing", ["otp", "realm", "username"])
def test_the_refusal_names_a_missing_parameter(coded: Coded, missing: str) -> None:
    left_out: dict[str, Any] = {missing: None}
    assert refusal(coded.authenticate("123456", **left_out)) == (400, "invalid_request", f"missing {missing} parameter")


def test_a_database_connection_refuses_codes_and_a_passwordless_connection_refuses_passwords(coded: Coded) -> None:
    assert refusal(coded.authenticate("123456", realm=coded.old.connection.name)) == (403, "access_denied", "Unknown or invalid realm")
    assert refusal(coded.old.authenticate(realm="email")) == (403, "access_denied", "Unknown or invalid realm")
