from __future__ import annotations

import pytest

from identity.models import Connection, Tenant, User
from identity.services.users import link_users
from tests.events.log_reading import types
from tests.factories.identity import make_connection, make_user
from tests.factories.organizations import make_group, make_organization
from tests.management import Management, segment


def delete(api: Management, connection: str, email: str | None) -> int:
    return api.call("DELETE", f"connections/{connection}/users", query={} if email is None else {"email": email}).status


def test_a_database_connection_is_offline_and_other_connections_are_online(
    api: Management, tenant: Tenant, database_connection: Connection
) -> None:
    directory = make_connection(tenant_id=tenant.pk, strategy="ad", name="directory")
    online, offline = (api.get(f"connections/{connection.pk}/status") for connection in (database_connection, directory))
    assert (online.status, online.json) == (200, {})
    assert (offline.status, offline.json["message"]) == (404, "The connection is offline.")


def test_a_status_request_for_an_unknown_connection_is_refused(api: Management) -> None:
    answer = api.get("connections/con_ffffffffffffffff/status")
    assert (answer.status, answer.json["errorCode"]) == (404, "inexistent_connection")


def test_deleting_users_of_a_connection_by_email_address_records_the_events_of_a_deletion(
    api: Management, tenant: Tenant, ada: User, database_connection: Connection
) -> None:
    organization, group = make_organization(tenant, "acme"), make_group(tenant, "engineers")
    api.post(f"organizations/{organization.pk}/members", {"members": [ada.user_id]})
    api.post(f"groups/{group.pk}/members", {"members": [ada.user_id]})
    recorded = len(types(tenant.pk))

    assert delete(api, database_connection.pk, "ADA@Example.test") == 204

    assert types(tenant.pk)[recorded:] == ["organization.member.deleted", "group.member.deleted", "user.deleted"]
    assert api.get(f"users/{segment(ada.user_id)}").status == 404
    assert delete(api, database_connection.pk, "ada@example.test") == 204


def test_users_with_the_same_email_address_in_other_connections_are_kept(api: Management, tenant: Tenant, ada: User) -> None:
    mail = make_connection(tenant_id=tenant.pk, strategy="email", name="mail")
    other = make_user(connection=mail, email="ada@example.test")
    linked = make_user(connection=mail, email="eve@example.test")
    link_users(tenant_id=tenant.pk, primary_id=ada.user_id, secondary_id=linked.user_id)

    assert delete(api, mail.pk, "eve@example.test") == 204
    assert delete(api, mail.pk, "ada@example.test") == 204

    assert list(User.objects.of(tenant.pk).values_list("user_id", flat=True)) == [ada.user_id]
    assert not User.objects.of(tenant.pk).filter(user_id=other.user_id).exists()
    assert len(api.get(f"users/{segment(ada.user_id)}").json["identities"]) == 2


@pytest.mark.parametrize("email", [None, ""])
def test_a_request_without_an_email_address_deletes_nothing(
    api: Management, ada: User, database_connection: Connection, email: str | None
) -> None:
    assert delete(api, database_connection.pk, email) == 400
    assert api.get(f"users/{segment(ada.user_id)}").status == 200


def test_a_deletion_by_email_address_requires_a_known_connection_and_a_scope(
    tenant: Tenant, ada: User, database_connection: Connection
) -> None:
    reader, api = Management(tenant, scope="read:users"), Management(tenant)
    assert delete(reader, database_connection.pk, "ada@example.test") == 403
    assert delete(api, "con_ffffffffffffffff", "ada@example.test") == 404
    assert User.objects.of(tenant.pk).filter(pk=ada.pk).exists()
