"""The clients of a connection over the management interface: which clients may use the connection."""

from __future__ import annotations

from identity.models import Connection, Tenant
from tests.factories.identity import make_connection
from tests.management import Management

UNKNOWN = "x" * 32


def made(api: Management, count: int) -> list[str]:
    return [api.post("clients", {"name": f"client {number}"}).json["client_id"] for number in range(count)]


def test_a_request_changes_all_named_clients_or_none(api: Management, database_connection: Connection) -> None:
    path = f"connections/{database_connection.pk}/clients"
    one, two = made(api, 2)
    unknown = api.patch(path, [{"client_id": one, "status": True}, {"client_id": UNKNOWN, "status": True}])
    assert (unknown.status, unknown.json["errorCode"]) == (404, "inexistent_client")
    assert api.get(path).json == {"clients": []}
    assert api.patch(path, [{"client_id": one, "status": True}, {"client_id": two, "status": True}]).status == 204
    assert api.get(path).json == {"clients": [{"client_id": one}, {"client_id": two}]}
    assert api.patch(path, [{"client_id": one, "status": False}, {"client_id": UNKNOWN, "status": False}]).status == 204
    assert api.get(f"connections/{database_connection.pk}").json["enabled_clients"] == [two]
    taken = api.get(path, {"take": "1000"})
    assert (taken.status, taken.json) == (200, {"clients": [{"client_id": two}]})
    assert api.get(path, {"take": "1001"}).status == 400


def test_invalid_bodies_change_nothing(api: Management, database_connection: Connection) -> None:
    path = f"connections/{database_connection.pk}/clients"
    (one,) = made(api, 1)
    good = {"client_id": one, "status": True}
    for body in ([], {}, good, [{"client_id": one}], [{**good, "x": 1}], [{**good, "status": "yes"}], [good] * 51, ["x"]):
        answer = api.patch(path, body)
        assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body"), body
    assert api.get(path).json == {"clients": []}
    missing = api.patch("connections/con_0123456789abcdef/clients", [good])
    assert (missing.status, missing.json["errorCode"]) == (404, "inexistent_connection")


def test_the_interface_lists_the_connections_of_a_client(api: Management, tenant: Tenant, database_connection: Connection) -> None:
    make_connection(tenant_id=tenant.pk)
    (one,) = made(api, 1)
    api.patch(f"connections/{database_connection.pk}/clients", [{"client_id": one, "status": True}])
    assert [found["name"] for found in api.get(f"clients/{one}/connections").json["connections"]] == ["people"]
    assert Management(tenant, scope="read:clients").get(f"clients/{one}/connections").status == 403
