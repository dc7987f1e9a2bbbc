"""Device credentials over the management interface: refresh tokens, and the public keys of devices."""

from __future__ import annotations

import pytest
from joserfc.jwk import RSAKey

from authapi.models import RefreshToken
from authapi.services.clients import create_client
from identity.models import Connection, Tenant, User
from tests.config.two_tenants import make_other_tenant
from tests.factories.identity import make_connection, make_user
from tests.factories.sign_ins import make_refresh_token
from tests.management import Management


@pytest.fixture
def api(tenant: Tenant) -> Management:
    return Management(tenant)


@pytest.fixture
def ada(database_connection: Connection) -> User:
    return make_user(connection=database_connection)


def test_refresh_tokens_are_listed_as_device_credentials_by_type(api: Management, tenant: Tenant, ada: User) -> None:
    client, _ = create_client(tenant_id=tenant.pk, name="app")
    fixed = make_refresh_token(ada, client, is_rotating=False, initial_user_agent="Phone/1.0")
    rotating = make_refresh_token(ada, client, is_rotating=True)
    shown = {
        "id": fixed.wire_id,
        "device_name": "Phone/1.0",
        "type": "refresh_token",
        "user_id": ada.user_id,
        "client_id": client.client_id,
    }

    page = api.get("device-credentials", {"include_totals": "true", "page": 0, "per_page": 50}).json

    assert page == {"start": 0, "limit": 50, "total": 1, "device_credentials": [shown]}
    assert api.get("device-credentials", {"type": "refresh_token"}).json == [shown]
    assert [row["id"] for row in api.get("device-credentials", {"type": "rotating_refresh_token"}).json] == [rotating.wire_id]
    assert api.get("device-credentials", {"type": "public_key"}).json == []
    assert api.get("device-credentials", {"fields": "id,type"}).json == [{"id": fixed.wire_id, "type": "refresh_token"}]


def test_the_key_of_a_device_is_registered_listed_and_deleted(api: Management, tenant: Tenant, ada: User) -> None:
    client, _ = create_client(tenant_id=tenant.pk, name="app")
    pem = RSAKey.generate_key(2048).as_pem(private=False).decode()
    body = {"device_name": "Phone", "type": "public_key", "value": pem, "device_id": "1", "client_id": client.client_id}
    made = api.post("device-credentials", {**body, "user_id": ada.user_id})
    assert (made.status, made.json.keys()) == (201, {"id"})
    shown = api.get("device-credentials", {"type": "public_key", "user_id": ada.user_id}).json
    assert shown == [
        {
            "id": made.json["id"],
            "device_name": "Phone",
            "device_id": "1",
            "type": "public_key",
            "user_id": ada.user_id,
            "client_id": client.client_id,
        }
    ]
    assert api.get("device-credentials", {"type": "public_key", "user_id": "database|x"}).json == []
    assert api.post("device-credentials", body).status == 400
    assert api.post("device-credentials", {**body, "user_id": "database|x"}).status == 404
    assert api.post("device-credentials", {**body, "user_id": ada.user_id, "value": "x"}).status == 400
    assert api.delete(f"device-credentials/{made.json['id']}").status == 204
    assert api.get("device-credentials", {"type": "public_key"}).json == []


def test_the_list_can_be_filtered_and_never_shows_a_token(api: Management, tenant: Tenant, ada: User) -> None:
    client, _ = create_client(tenant_id=tenant.pk, name="app")
    other, _ = create_client(tenant_id=tenant.pk, name="other")
    eve = make_user(connection=ada.connection)
    token = make_refresh_token(ada, client, is_rotating=False)
    make_refresh_token(eve, other, is_rotating=False)

    for query in ({"user_id": ada.user_id}, {"client_id": client.client_id}):
        answer = api.get("device-credentials", query)
        assert [row["id"] for row in answer.json] == [token.wire_id]
        assert token.token not in answer.body.decode()
    assert api.get("device-credentials", {"type": "password"}).status == 400


def test_a_deletion_ends_the_refresh_token_and_can_be_repeated(api: Management, tenant: Tenant, ada: User) -> None:
    client, _ = create_client(tenant_id=tenant.pk, name="app")
    token = make_refresh_token(ada, client, is_rotating=False)
    assert [api.delete(f"device-credentials/{token.wire_id}").status for _ in range(2)] == [204, 204]
    assert api.get("device-credentials").json == []
    assert api.delete("device-credentials/dcr_0123456789abcdef").status == 204
    refused = api.delete("device-credentials/dcr_short")
    assert (refused.status, refused.json["errorCode"]) == (400, "invalid_uri")


def test_a_token_of_another_tenant_cannot_be_listed_or_ended(api: Management, tenant: Tenant) -> None:
    other = make_other_tenant()
    user = make_user(connection=make_connection(tenant_id=other.pk, name="people"))
    client, _ = create_client(tenant_id=other.pk, name="app")
    token = make_refresh_token(user, client, is_rotating=False)
    assert api.get("device-credentials", {"user_id": user.user_id}).json == []
    assert api.delete(f"device-credentials/{token.wire_id}").status == 204
    assert RefreshToken.objects.of(other.pk).filter(pk=token.pk, revoked=None).exists()


def test_device_credentials_require_their_scopes(tenant: Tenant) -> None:
    reader = Management(tenant, scope="read:device_credentials")
    assert reader.get("device-credentials").status == 200
    assert reader.delete("device-credentials/dcr_0123456789abcdef").status == 403
    assert Management(tenant, scope="read:refresh_tokens").get("device-credentials").status == 403
