"""Blocks after failed logins, over the management interface: listed and lifted by user or by identifier. Lifting changes no user."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from authapi.models import LoginFailures
from events.models import Event
from identity.models import Tenant, User
from tests.factories.identity import make_connection, make_user
from tests.factories.sign_ins import make_block
from tests.management import Management, segment

NONE: dict[str, list[object]] = {"blocked_for": []}


def shown(api: Management, ada: User) -> dict[str, object]:
    by_user, by_name = api.get(f"user-blocks/{segment(ada.user_id)}"), api.get("user-blocks", {"identifier": "Ada@example.test"})
    assert (by_user.status, by_name.status) == (200, 200)
    assert by_user.json == by_name.json
    return dict(by_user.json)


def test_a_block_is_listed_by_user_and_by_identifier(api: Management, ada: User) -> None:
    make_block(ada)
    assert shown(api, ada) == {"blocked_for": [{"identifier": "ada@example.test", "ip": "192.0.2.7", "connection": "people"}]}


def test_a_block_for_all_ip_addresses_is_listed_without_an_ip_address(api: Management, ada: User) -> None:
    make_block(ada, ip="")
    assert shown(api, ada) == {"blocked_for": [{"identifier": "ada@example.test", "connection": "people"}]}


def test_counts_below_the_threshold_and_expired_blocks_are_not_listed(api: Management, ada: User) -> None:
    make_block(ada, ip="192.0.2.1", blocked_at=None, count=9)
    make_block(ada, ip="192.0.2.2", last_failed_at=timezone.now() - timedelta(days=31))
    make_block(ada, ip="192.0.2.3", count=3)
    assert shown(api, ada) == NONE
    assert api.get("user-blocks", {"identifier": "nobody@example.test"}).json == NONE


def test_a_block_of_the_same_identifier_in_another_connection_is_not_listed_for_the_user(
    api: Management, tenant: Tenant, ada: User
) -> None:
    make_block(make_user(connection=make_connection(tenant_id=tenant.pk, name="partners"), email="ada@example.test"))

    assert api.get(f"user-blocks/{segment(ada.user_id)}").json == NONE
    assert len(api.get("user-blocks", {"identifier": "ada@example.test"}).json["blocked_for"]) == 1


def test_blocks_are_omitted_on_request_while_brute_force_protection_is_off(api: Management, ada: User) -> None:
    make_block(ada)
    api.patch("attack-protection/brute-force-protection", {"enabled": False})

    path = f"user-blocks/{segment(ada.user_id)}"
    assert len(api.get(path).json["blocked_for"]) == 1
    assert api.get(path, {"consider_brute_force_enablement": "true"}).json == NONE
    assert api.get(path, {"consider_brute_force_enablement": "perhaps"}).json["errorCode"] == "invalid_query_string"


def test_lifting_blocks_does_not_change_the_user(api: Management, ada: User) -> None:
    recorded = Event.objects.filter(tenant_id=ada.tenant_id).count()
    for path in (f"user-blocks/{segment(ada.user_id)}", "user-blocks?identifier=ada%40example.test"):
        make_block(ada), make_block(ada, ip="198.51.100.4")
        name, _, query = path.partition("?identifier=")
        answer = api.call("DELETE", name, query={"identifier": "ada@example.test"} if query else {})
        assert answer.status == 204
        assert not LoginFailures.objects.of(ada.tenant_id).exists()
        assert shown(api, ada) == NONE
    before = ada.updated_at
    ada.refresh_from_db()
    assert ada.updated_at == before
    assert Event.objects.filter(tenant_id=ada.tenant_id).count() == recorded


def test_an_unknown_user_gets_404_and_a_missing_identifier_gets_400(api: Management) -> None:
    unknown = "user-blocks/database%7Cffffffffffffffffffffffff"
    assert [api.get(unknown).status, api.delete(unknown).status] == [404, 404]
    assert [api.get("user-blocks").status, api.delete("user-blocks").status] == [400, 400]
    assert api.call("DELETE", "user-blocks", query={"identifier": "nobody@example.test"}).status == 204
