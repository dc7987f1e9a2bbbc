"""Sessions, refresh tokens and consents over the management interface: shown without secrets, and revoked with all dependent rows."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from authapi.models import Client, Consent, RefreshToken, Session
from authapi.services.clients import create_client
from identity.models import Connection, Tenant, User
from tests.config.two_tenants import make_other_tenant
from tests.factories.identity import make_connection, make_user
from tests.factories.sign_ins import make_consent, make_refresh_token, make_session
from tests.management import Management, segment


@pytest.fixture
def app(tenant: Tenant) -> Client:
    return create_client(tenant_id=tenant.pk, name="Shop")[0]


@pytest.fixture
def other_app(tenant: Tenant) -> Client:
    return create_client(tenant_id=tenant.pk, name="Phone")[0]


def alive(user: User) -> set[str]:
    return set(RefreshToken.objects.of(user.tenant_id).filter(user=user, revoked=None).values_list("wire_id", flat=True))


def test_a_session_is_shown_with_its_clients_but_without_its_secret(api: Management, ada: User, app: Client) -> None:
    session = make_session(ada, app)

    shown = api.get(f"sessions/{session.pk}")

    assert shown.status == 200
    assert shown.json["id"] == session.pk
    assert shown.json["user_id"] == ada.user_id
    assert shown.json["clients"] == [{"client_id": app.client_id}]
    assert shown.json["device"]["initial_ip"] == "192.0.2.7"
    assert shown.json["device"]["initial_user_agent"] == "Browser/1.0"
    assert [proof["name"] for proof in shown.json["authentication"]["methods"]] == ["pwd"]
    assert shown.json["session_metadata"] == {}
    assert session.digest.encode() not in shown.body


def test_session_metadata_is_replaced_as_a_whole_and_limited_in_size(api: Management, ada: User) -> None:
    path = f"sessions/{make_session(ada).pk}"
    assert api.patch(path, {"session_metadata": {"device": "kiosk", "floor": 3}}).json["session_metadata"] == {
        "device": "kiosk",
        "floor": 3,
    }
    assert api.patch(path, {"session_metadata": {"floor": 4}}).json["session_metadata"] == {"floor": 4}
    assert api.patch(path, {"session_metadata": None}).json["session_metadata"] == {}
    for body in ({}, {"expires_at": "2030-01-01T00:00:00Z"}, {"session_metadata": {str(number): 1 for number in range(26)}}):
        assert api.patch(path, body).json["errorCode"] == "invalid_body", body


def test_deleting_a_session_keeps_its_offline_tokens(api: Management, ada: User, app: Client) -> None:
    session = make_session(ada, app)
    offline = make_refresh_token(ada, app, session).wire_id
    make_refresh_token(ada, app, session, scope="openid online_access")

    assert api.delete(f"sessions/{session.pk}").status == 202

    assert not Session.objects.of(ada.tenant_id).exists()
    assert alive(ada) == {offline}
    assert api.get(f"sessions/{session.pk}").status == 404
    assert api.delete(f"sessions/{session.pk}").status == 404


def test_revoking_a_session_revokes_only_its_own_refresh_tokens(api: Management, ada: User, app: Client) -> None:
    session, other = make_session(ada, app), make_session(ada, app)
    make_refresh_token(ada, app, session)
    kept = make_refresh_token(ada, app, other).wire_id

    assert api.post(f"sessions/{session.pk}/revoke").status == 202

    assert alive(ada) == {kept}
    assert set(Session.objects.of(ada.tenant_id).values_list("pk", flat=True)) == {other.pk}


def test_sessions_of_a_user_are_listed_and_ended_together(api: Management, ada: User, database_connection: Connection) -> None:
    bob = make_user(connection=database_connection, email="bob@example.test")
    sessions = [make_session(ada).pk for _ in range(3)]
    kept = make_session(bob).pk
    path = f"users/{segment(ada.user_id)}/sessions"

    first = api.get(path, {"take": 2}).json
    rest = api.get(path, {"take": 2, "from": first["next"]}).json

    assert [row["id"] for row in [*first["sessions"], *rest["sessions"]]] == sessions
    assert "next" not in rest
    assert api.delete(path).status == 202
    assert api.get(path).json == {"sessions": []}
    assert list(Session.objects.of(ada.tenant_id).values_list("pk", flat=True)) == [kept]


def test_all_access_of_a_user_is_revoked_by_one_request(api: Management, ada: User, app: Client) -> None:
    session = make_session(ada, app)
    make_refresh_token(ada, app, session)
    make_refresh_token(ada, app)

    assert api.post(f"users/{segment(ada.user_id)}/revoke-access", {}).status == 202

    assert alive(ada) == set()
    assert not Session.objects.of(ada.tenant_id).exists()


def test_a_session_can_be_ended_without_revoking_its_refresh_tokens(api: Management, ada: User, app: Client) -> None:
    session, other = make_session(ada, app), make_session(ada, app)
    kept = make_refresh_token(ada, app, session).wire_id
    path = f"users/{segment(ada.user_id)}/revoke-access"

    assert api.post(path, {"session_id": session.pk, "preserve_refresh_tokens": True}).status == 202
    assert alive(ada) == {kept}
    assert list(Session.objects.of(ada.tenant_id).values_list("pk", flat=True)) == [other.pk]
    assert api.post(path, {"session_id": session.pk}).status == 404


def test_the_session_of_another_user_cannot_be_named_in_a_revocation(api: Management, ada: User, database_connection: Connection) -> None:
    bob = make_user(connection=database_connection, email="bob@example.test")
    session = make_session(bob)

    assert api.post(f"users/{segment(ada.user_id)}/revoke-access", {"session_id": session.pk}).status == 404
    assert Session.objects.of(ada.tenant_id).filter(pk=session.pk).exists()


def test_a_refresh_token_is_shown_without_its_value(api: Management, ada: User, app: Client) -> None:
    session = make_session(ada, app)
    token = make_refresh_token(ada, app, session)

    shown = api.get(f"refresh-tokens/{token.wire_id}")

    assert shown.json["id"] == token.wire_id
    assert shown.json["session_id"] == session.pk
    assert shown.json["client_id"] == app.client_id
    assert shown.json["rotating"] is True
    assert shown.json["resource_servers"] == [{"audience": "https://orders.example.test", "scopes": "openid offline_access"}]
    assert token.token.encode() not in shown.body


def test_only_valid_tokens_are_shown(api: Management, ada: User, app: Client) -> None:
    past = timezone.now() - timedelta(minutes=1)
    kept = make_refresh_token(ada, app, expires_at=None).wire_id
    gone = [
        make_refresh_token(ada, app, expires_at=past),
        make_refresh_token(ada, app, idle_expires_at=past),
        make_refresh_token(ada, app, revoked=past),
    ]

    assert [row["id"] for row in api.get("refresh-tokens", {"user_id": ada.user_id}).json["refresh_tokens"]] == [kept]
    assert [row["id"] for row in api.get(f"users/{segment(ada.user_id)}/refresh-tokens").json["tokens"]] == [kept]
    for token in gone:
        assert api.get(f"refresh-tokens/{token.wire_id}").status == 404


def test_refresh_tokens_are_listed_by_user_and_client(api: Management, ada: User, app: Client, other_app: Client) -> None:
    at_shop, at_phone = make_refresh_token(ada, app).wire_id, make_refresh_token(ada, other_app).wire_id

    both = api.get("refresh-tokens", {"user_id": ada.user_id, "take": 1}).json
    assert [row["id"] for row in both["refresh_tokens"]] == [at_shop]
    following = api.get("refresh-tokens", {"user_id": ada.user_id, "take": 1, "from": both["next"]}).json
    assert [row["id"] for row in following["refresh_tokens"]] == [at_phone]
    one = api.get("refresh-tokens", {"user_id": ada.user_id, "client_id": other_app.client_id}).json
    assert [row["id"] for row in one["refresh_tokens"]] == [at_phone]
    assert api.get("refresh-tokens").json["errorCode"] == "invalid_query_string"


def test_a_refresh_token_can_be_revoked_and_its_metadata_can_be_changed(api: Management, ada: User, app: Client) -> None:
    path = f"refresh-tokens/{make_refresh_token(ada, app).wire_id}"

    assert api.patch(path, {"refresh_token_metadata": {"risk": "low"}}).json["refresh_token_metadata"] == {"risk": "low"}
    assert api.patch(path, {}).status == 400
    assert [api.delete(path).status for _ in range(2)] == [202, 404]
    assert api.patch(path, {"refresh_token_metadata": {}}).status == 404
    assert alive(ada) == set()


@pytest.mark.parametrize("chosen", ["ids", "user", "client", "both", "audience"])
def test_refresh_tokens_are_revoked_by_the_criteria_of_the_request(
    api: Management, ada: User, app: Client, other_app: Client, chosen: str
) -> None:
    bob = make_user(connection=ada.connection, email="bob@example.test")
    first = make_refresh_token(ada, app)
    elsewhere = make_refresh_token(ada, app, audience="https://billing.example.test")
    phone, bobs = make_refresh_token(ada, other_app), make_refresh_token(bob, app)
    bodies = {
        "ids": ({"ids": [first.wire_id, "rt_unknown"]}, {first}),
        "user": ({"user_id": ada.user_id}, {first, elsewhere, phone}),
        "client": ({"client_id": app.client_id}, {first, elsewhere, bobs}),
        "both": ({"user_id": ada.user_id, "client_id": app.client_id}, {first, elsewhere}),
        "audience": ({"user_id": ada.user_id, "audience": "https://billing.example.test"}, {elsewhere}),
    }
    body, ended = bodies[chosen]

    assert api.post("refresh-tokens/revoke", body).status == 202

    left = {first, elsewhere, phone, bobs} - ended
    assert alive(ada) | alive(bob) == {token.wire_id for token in left}


def test_a_revocation_with_incomplete_or_conflicting_criteria_is_refused(api: Management, ada: User, app: Client) -> None:
    token = make_refresh_token(ada, app)
    half: list[dict[str, object]] = [{}, {"audience": "https://orders.example.test"}, {"ids": []}]
    for body in [*half, {"ids": [token.wire_id], "user_id": ada.user_id}]:
        assert api.post("refresh-tokens/revoke", body).json["errorCode"] == "invalid_body", body
    assert "on property user_id" in api.post("refresh-tokens/revoke", {"user_id": "ada"}).json["message"]
    assert api.post("refresh-tokens/revoke", {"user_id": "database|ffffffffffffffffffffffff"}).status == 404
    assert api.post("refresh-tokens/revoke", {"client_id": "f" * 32}).json["errorCode"] == "inexistent_client"
    assert alive(ada) == {token.wire_id}


def test_refresh_tokens_of_another_tenant_cannot_be_revoked_by_id(api: Management) -> None:
    other = make_other_tenant()
    stranger = make_user(connection=make_connection(tenant_id=other.pk, name="people"), email="eve@example.test")
    token = make_refresh_token(stranger, create_client(tenant_id=other.pk, name="Theirs")[0])

    assert api.post("refresh-tokens/revoke", {"ids": [token.wire_id]}).status == 202
    assert alive(stranger) == {token.wire_id}


def test_revoking_a_consent_revokes_the_tokens_that_depend_on_it(api: Management, ada: User, app: Client, other_app: Client) -> None:
    consent, kept = make_consent(ada, app), make_consent(ada, other_app)
    make_refresh_token(ada, app)
    phone = make_refresh_token(ada, other_app).wire_id

    listed = api.get("grants", {"user_id": ada.user_id, "client_id": app.client_id, "include_totals": "true"}).json
    assert (listed["total"], listed["start"]) == (1, 0)
    assert listed["grants"] == [
        {
            "id": str(consent.pk),
            "clientID": app.client_id,
            "user_id": ada.user_id,
            "audience": "https://orders.example.test",
            "scope": ["read:orders"],
        }
    ]
    assert [api.delete(f"grants/{consent.pk}").status for _ in range(2)] == [204, 204]
    assert alive(ada) == {phone}
    assert list(Consent.objects.of(ada.tenant_id)) == [kept]


def test_every_consent_of_a_user_is_revoked_by_the_id_of_the_user(api: Management, ada: User, app: Client, other_app: Client) -> None:
    bob = make_user(connection=ada.connection, email="bob@example.test")
    make_consent(ada, app), make_consent(ada, other_app)
    kept = make_consent(bob, app)

    assert api.delete("grants").json["errorCode"] == "invalid_query_string"
    assert api.delete("grants?user_id=").status == 400
    answer = api.call("DELETE", "grants", query={"user_id": ada.user_id})
    assert answer.status == 204
    assert list(Consent.objects.of(ada.tenant_id)) == [kept]
    assert api.call("DELETE", "grants", query={"user_id": "database|ffffffffffffffffffffffff"}).status == 404


@pytest.mark.parametrize(
    ("method", "path", "scope"),
    [
        ("GET", "sessions/x", "read:users"),
        ("POST", "sessions/x/revoke", "delete:sessions"),
        ("POST", "sessions/x/revoke", "delete:refresh_tokens"),
        ("POST", "users/x/revoke-access", "delete:sessions"),
        ("GET", "refresh-tokens", "read:sessions"),
        ("DELETE", "grants/1", "read:grants"),
        ("POST", "keys/signing/rotate", "update:signing_keys"),
        ("GET", "logs", "read:logs_users"),
        ("PATCH", "tenants/settings", "read:tenant_settings"),
        ("DELETE", "user-blocks/x", "read:users"),
    ],
)
def test_a_token_that_lacks_one_of_the_required_scopes_is_refused(tenant: Tenant, method: str, path: str, scope: str) -> None:
    answer = Management(tenant, scope=scope).call(method, path, body={} if method in ("POST", "PATCH") else None)
    assert (answer.status, answer.json["errorCode"]) == (403, "insufficient_scope")
