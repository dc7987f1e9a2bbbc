"""`POST /bc-authorize`: allowed clients and users, limits, and how users are notified (CIBA 7; contract, 2.11)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core import mail

from authapi.edge.buckets import Bucket
from authapi.models import CibaRequest, SignIn
from authapi.protocols.ciba import limits
from authapi.services.clients import update_client
from identity.models import Job, Tenant
from identity.services.connections import update_connection
from identity.services.failures import Invalid
from identity.services.users import update_user
from tests.authapi.memory import forget_all
from tests.authapi.protocols.ciba.conftest import CallCenter, call_center
from tests.authapi.proving import Prover, settle_memory
from tests.authapi.token_forms import basic
from tests.factories.authapi import host_of
from tests.factories.sign_in import people, person, web_client


def test_an_application_requests_approval_and_the_user_gets_one_mail_with_a_link(center: CallCenter) -> None:
    answer = center.start()
    assert answer.status == 200, answer.body
    assert answer.headers["cache-control"] == "no-store"
    assert {**answer.json(), "auth_req_id": ""} == {"auth_req_id": "", "expires_in": 300, "interval": 5}
    center.begun = answer.json()
    center.deliver()
    (sent,) = mail.outbox
    assert sent.to == ["ada@example.test"]
    assert "21-49-38" in sent.body
    assert "Call center" in sent.body
    stored = str(CibaRequest.objects.of(center.tenant.pk).values().get()) + str(list(Job.objects.of(center.tenant.pk).values()))
    for secret in (center.begun["auth_req_id"], center.mailed_link().partition("=")[2]):
        assert secret not in stored
    assert center.begun["auth_req_id"] not in sent.body
    assert center.lines() == ["ciba_start_succeeded"]


REFUSED: list[tuple[dict[str, Any], tuple[int, str]]] = [
    ({"client_secret": "wrong"}, (401, "invalid_client")),
    ({"scope": "profile"}, (400, "invalid_request")),
    ({"scope": None}, (400, "invalid_request")),
    ({"binding_message": None}, (400, "invalid_request")),
    ({"binding_message": "a" * 65}, (400, "invalid_binding_message")),
    ({"binding_message": "Pay 5 EUR"}, (400, "invalid_binding_message")),
    ({"binding_message": "<b>21</b>"}, (400, "invalid_binding_message")),
    ({"binding_message": "21\n"}, (400, "invalid_binding_message")),
    ({"binding_message": "\uff12\uff11"}, (400, "invalid_binding_message")),
    ({"login_hint": None}, (400, "invalid_request")),
    ({"login_hint": "ada@example.test"}, (400, "invalid_request")),
    ({"login_hint": '["iss_sub"]'}, (400, "invalid_request")),
    ({"login_hint": '{"format": "email", "iss": "a", "sub": "b"}'}, (400, "invalid_request")),
    ({"login_hint": '{"format": "iss_sub", "iss": {}, "sub": 7}'}, (400, "invalid_request")),
    ({"id_token_hint": "x"}, (400, "invalid_request")),
    ({"request": "x"}, (400, "invalid_request")),
    ({"requested_expiry": "0"}, (400, "invalid_request")),
    ({"requested_expiry": "259201"}, (400, "invalid_request")),
    ({"requested_expiry": "1e3"}, (400, "invalid_request")),
    ({"audience": "https://nowhere.example.test"}, (403, "access_denied")),
    ({"authorization_details": '[{"type": "payment"}]'}, (400, "invalid_authorization_details")),
]


def test_a_request_that_cannot_be_granted_is_refused_before_the_user_is_notified(center: CallCenter) -> None:
    assert [(changes, center.refusal(**changes)) for changes, _ in REFUSED] == REFUSED
    assert not CibaRequest.objects.of(center.tenant.pk).exists()
    assert not Job.objects.of(center.tenant.pk).exists()


def test_unusual_forms_of_a_valid_request_are_accepted(tenant: Tenant) -> None:
    center = call_center(tenant, token_endpoint_auth_method="client_secret_basic")
    proof = basic(center.client.client_id, center.secret)
    spelled: dict[str, Any] = {"client_id": None, "client_secret": None, "audience": "None", "requested_expiry": "900"}
    assert center.start(headers=proof, **spelled).json()["expires_in"] == 900
    shortened = json.loads(center.hint())
    shortened["iss"] = shortened["iss"].rstrip("/")
    assert center.start(headers=proof, client_id=None, client_secret=None, login_hint=json.dumps(shortened)).status == 200


def test_public_clients_and_clients_without_the_grant_are_refused(tenant: Tenant) -> None:
    public, _ = web_client(tenant, name="App", grant_types=["urn:openid:params:grant-type:ciba"], token_endpoint_auth_method="none")
    center = call_center(tenant)
    assert center.refusal(client_id=public.client_id, client_secret=None) == (401, "invalid_client")
    update_client(tenant_id=tenant.pk, client_id=center.client.client_id, changes={"grant_types": ["authorization_code"]})
    forget_all()
    # The answer is the same for an existing user and for an unknown user.
    unknown = center.hint(sub="auth0|nobody")
    assert center.refusal() == center.refusal(login_hint=unknown) == (403, "unauthorized_client")
    changes = {"grant_types": ["urn:openid:params:grant-type:ciba"], "settings": {"compliance_level": "fapi2_sp_mtls_mtls"}}
    with pytest.raises(Invalid):
        update_client(tenant_id=tenant.pk, client_id=center.client.client_id, changes=changes)


@pytest.mark.parametrize("has_notifier", [True, False])
def test_a_refusal_for_another_reason_does_not_reveal_whether_the_user_exists(center: CallCenter, *, has_notifier: bool) -> None:
    if not has_notifier:
        changes = {"settings": {"async_approval_notification_channels": ["guardian-push"]}}
        update_client(tenant_id=center.tenant.pk, client_id=center.client.client_id, changes=changes)
        forget_all()
    expiry = "0" if has_notifier else "300"
    unknown = center.hint(sub="auth0|unknown")
    assert center.refusal(requested_expiry=expiry) == center.refusal(requested_expiry=expiry, login_hint=unknown)
    assert center.refusal(requested_expiry=expiry)[1] != "unknown_user_id"


def test_every_user_whom_the_application_may_not_ask_gets_the_same_refusal(center: CallCenter) -> None:
    elsewhere = person(people(center.tenant, name="others"), email="eve@example.test")
    answers = [
        center.start(login_hint=center.hint(sub="auth0|nobody")),
        center.start(login_hint=center.hint(sub=elsewhere.user_id)),
        center.start(login_hint=center.hint(iss="https://other.example.test/")),
        center.start(login_hint=center.hint(sub="a\x00b")),
    ]
    update_user(tenant_id=center.tenant.pk, user_id=center.user.user_id, changes={"blocked": True})
    answers.append(center.start())
    assert {answer.body for answer in answers} == {b'{"error":"unknown_user_id","error_description":"User ID is malformed or unknown"}'}
    assert {answer.status for answer in answers} == {400}
    assert center.lines() == ["ciba_start_failed"] * 5


def test_an_application_can_try_only_a_limited_number_of_user_names(center: CallCenter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "UNKNOWN_USERS_OF_CLIENT", Bucket("approval_unknown_few", 2, 3600.0))
    unknown = center.hint(sub="auth0|nobody")
    assert [center.refusal(login_hint=unknown)[0] for _ in range(3)] == [400, 400, 429]
    # The right name now gets the same answer as a wrong name.
    assert center.refusal() == (429, "too_many_requests")


def test_one_application_cannot_flood_a_mailbox_and_another_application_is_still_served(center: CallCenter) -> None:
    fields: dict[str, Any] = {"name": "Bank", "token_endpoint_auth_method": "client_secret_post"}
    other, secret = web_client(center.tenant, grant_types=center.client.grant_types, **fields)
    update_connection(
        tenant_id=center.tenant.pk,
        connection_id=center.connection.pk,
        changes={"enabled_clients": [center.client.client_id, other.client_id]},
    )
    statuses = [center.start().status for _ in range(limits.MOST_OF_CLIENT_AND_USER + 1)]
    assert statuses == [200] * limits.MOST_OF_CLIENT_AND_USER + [429]
    assert int(center.start().headers["retry-after"]) > 0
    assert center.start(client_id=other.client_id, client_secret=secret).status == 200
    assert Job.objects.of(center.tenant.pk).count() == limits.MOST_OF_CLIENT_AND_USER + 1
    # Denied requests no longer count as waiting. After two more requests, the rate limit refuses further requests.
    for _ in range(2):
        CibaRequest.objects.of(center.tenant.pk).update(status=CibaRequest.Status.DENIED)
        assert center.start().status == 200
    CibaRequest.objects.of(center.tenant.pk).update(status=CibaRequest.Status.DENIED)
    assert center.refusal() == (429, "too_many_requests")


def test_the_waiting_requests_of_a_user_and_of_an_application_are_limited(center: CallCenter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_OF_USER", 1)
    assert [center.start().status for _ in range(2)] == [200, 429]
    monkeypatch.setattr(limits, "MOST_OF_CLIENT", 1)
    eve = person(center.connection, email="eve@example.test")
    assert center.start(login_hint=center.hint(sub=eve.user_id)).status == 429


def test_the_refusal_says_what_is_missing_to_notify_the_user(center: CallCenter, settings: Any) -> None:
    update_user(tenant_id=center.tenant.pk, user_id=center.user.user_id, changes={"email_verified": False})
    assert "no verified e-mail address" in center.start().json()["error_description"]
    client_settings = {"async_approval_notification_channels": ["guardian-push"]}
    update_client(tenant_id=center.tenant.pk, client_id=center.client.client_id, changes={"settings": client_settings})
    forget_all()
    assert "leaves email out" in center.start().json()["error_description"]
    settings.MAIL_IS_CONFIGURED = False
    answer = center.start()
    assert (answer.status, answer.json()["error"]) == (400, "invalid_request")
    assert "no mail server is configured" in answer.json()["error_description"]
    assert not CibaRequest.objects.of(center.tenant.pk).exists()


def test_a_proof_binds_the_request_to_its_key(center: CallCenter) -> None:
    settle_memory()
    prover, issuer = Prover(), host_of(center.tenant).issuer
    answer = prover.proven(lambda: center.start(headers={"DPoP": prover.proof("POST", f"{issuer}bc-authorize")}))
    center.begun = answer.json()
    assert center.error() == (400, "invalid_grant")
    polled = prover.proven(lambda: center.poll(headers={"DPoP": prover.proof("POST", f"{issuer}oauth/token")}))
    assert polled.json()["error"] == "authorization_pending"


def test_the_sign_in_log_records_how_the_user_was_notified(center: CallCenter) -> None:
    center.begin()
    line = SignIn.objects.of(center.tenant.pk).get()
    assert (line.user_id, line.client_id, line.details["channel"]) == (center.user.user_id, center.client.client_id, "email")
