from __future__ import annotations

from collections.abc import Iterator
from threading import Thread
from typing import Any

import pytest
from django.db import connections
from pytest_django.fixtures import Settings

from identity.hosts import default_address, forget_hosts, hosts_of, resolve_host
from identity.models import AuditEntry, CustomDomain, Tenant
from identity.services import domains
from identity.services.domain_checks import issuer_of
from tests.config.two_tenants import make_other_tenant
from tests.factories.models.identity import CustomDomainFactory
from tests.management import Answer, Management, request
from tests.name_server import NameServer, name_server

UNKNOWN = "cd_ffffffffffffffff"


@pytest.fixture
def server(settings: Settings) -> Iterator[NameServer]:
    with name_server() as running:
        settings.DNS_SERVERS = [running.address]
        yield running


@pytest.fixture
def host(tenant: Tenant) -> str:
    return f"login.{tenant.pk}.example.org"


def add(api: Management, host: str, **members: Any) -> dict[str, Any]:
    made = api.post("custom-domains", {"domain": host, "type": "self_managed_certs", **members})
    assert made.status == 201, made.body
    found: dict[str, Any] = made.json
    return found


def publish(server: NameServer, domain: dict[str, Any], *others: str) -> None:
    method = domain["verification"]["methods"][0]
    server.records[method["domain"]] = [*others, method["record"]]


def verify(api: Management, domain: dict[str, Any]) -> Answer:
    return api.post(f"custom-domains/{domain['custom_domain_id']}/verify")


def tenant_at(host: str) -> str | None:
    forget_hosts()
    match = resolve_host(host)
    return match.tenant_id if match else None


def test_a_pending_domain_is_not_served_until_its_record_is_found(api: Management, tenant: Tenant, server: NameServer, host: str) -> None:
    domain = add(api, host)
    assert (domain["domain"], domain["status"], domain["verification"]["status"]) == (host, "pending_verification", "pending")
    assert tenant_at(host) is None
    assert request("GET", "/.well-known/openid-configuration", "", {"host": host}, b"").status == 404

    unproven = verify(api, domain).json
    assert (unproven["status"], unproven["verification"]["status"]) == ("pending_verification", "failed")
    assert "was not found" in unproven["verification"]["error_msg"]
    assert tenant_at(host) is None

    publish(server, domain, "something else", "domain-verification=")
    proven = verify(api, domain).json
    assert (proven["status"], proven["verification"]["status"]) == ("ready", "verified")
    assert tenant_at(host) == tenant.pk
    assert request("GET", "/.well-known/openid-configuration", "", {"host": host}, b"").status == 200
    noted = AuditEntry.objects.filter(tenant_id=tenant.pk, object_id=domain["custom_domain_id"])
    assert {entry.actor_id for entry in noted} == {api.client.client_id}


def test_a_verified_domain_stays_verified_when_its_dns_record_disappears(
    api: Management, tenant: Tenant, server: NameServer, host: str
) -> None:
    domain = add(api, host)
    publish(server, domain)
    verify(api, domain)
    server.records.clear()
    assert verify(api, domain).json["status"] == "ready"
    assert tenant_at(host) == tenant.pk


def test_the_dns_record_of_another_tenant_proves_nothing(api: Management, tenant: Tenant, server: NameServer, host: str) -> None:
    other = make_other_tenant()
    stranger = Management(other)
    own, foreign = add(api, host), add(stranger, host)
    assert own["verification"]["methods"][0]["domain"] == foreign["verification"]["methods"][0]["domain"]
    publish(server, own)

    assert verify(stranger, foreign).json["status"] == "pending_verification"
    assert verify(api, own).json["status"] == "ready"
    assert tenant_at(host) == tenant.pk


def test_a_domain_pending_at_two_tenants_belongs_to_the_first_tenant_that_proves_control(
    api: Management, tenant: Tenant, server: NameServer, host: str
) -> None:
    other = make_other_tenant()
    squatter = Management(other)
    squatted, own = add(squatter, host), add(api, host)
    publish(server, own)
    assert verify(api, own).json["status"] == "ready"

    publish(server, squatted)
    late = verify(squatter, squatted)

    assert late.status == 409
    assert tenant.pk not in late.body.decode()
    assert tenant_at(host) == tenant.pk


@pytest.mark.parametrize("spelling", ["{}", "{}.", "LOGIN.{}"])
def test_a_domain_in_use_gets_a_conflict_that_names_no_tenant(
    api: Management, tenant: Tenant, server: NameServer, host: str, spelling: str
) -> None:
    domain = add(api, host)
    publish(server, domain)
    verify(api, domain)
    asked = spelling.format(host.removeprefix("login.") if "LOGIN" in spelling else host)
    body = {"domain": asked, "type": "self_managed_certs"}

    foreign, own = Management(make_other_tenant()).post("custom-domains", body), api.post("custom-domains", body)

    assert (foreign.status, own.status) == (409, 409)
    assert foreign.body == own.body
    assert foreign.json["message"] == "The domain is in use already."


def test_a_dns_record_that_is_a_cname_is_not_followed(api: Management, server: NameServer, host: str) -> None:
    domain = add(api, host)
    method = domain["verification"]["methods"][0]
    server.aliases[method["domain"]] = "records.attacker.example"
    server.records["records.attacker.example"] = [method["record"]]
    assert verify(api, domain).json["status"] == "pending_verification"


def test_a_domain_that_is_added_again_requires_a_new_dns_record(api: Management, server: NameServer, host: str) -> None:
    first = add(api, host)
    publish(server, first)
    verify(api, first)
    assert api.delete(f"custom-domains/{first['custom_domain_id']}").status == 204
    assert tenant_at(host) is None
    again = add(api, host)
    assert verify(api, again).json["status"] == "pending_verification"


def test_a_dns_record_with_an_empty_token_proves_nothing(api: Management, tenant: Tenant, server: NameServer, host: str) -> None:
    domain = add(api, host)
    CustomDomain.objects.of(tenant.pk).filter(host=host).update(verification_token="")
    server.records[f"_domain-verification.{host}"] = ["domain-verification="]
    assert verify(api, domain).json["status"] == "pending_verification"


def test_a_silent_name_server_is_reported_and_only_one_check_runs_at_a_time(
    api: Management, server: NameServer, host: str, settings: Settings
) -> None:
    settings.DNS_LOOKUP_SECONDS = 1.0
    domain = add(api, host)
    server.silent.add(domain["verification"]["methods"][0]["domain"])
    answers: list[Answer] = []

    def first() -> None:
        answers.append(verify(api, domain))
        connections.close_all()

    thread = Thread(target=first)
    thread.start()
    assert server.asked.wait(20)
    assert verify(api, domain).status == 429
    thread.join(20)

    assert answers[0].status == 200
    assert answers[0].json["verification"]["error_msg"] == "The name servers gave no answer."


@pytest.mark.parametrize(
    "host",
    [
        "localhost", "auth.localhost", "127.0.0.1", "[::1]", "intranet", "login.example.org:8443", "https://login.example.org",
        "_dmarc.example.org", "mtls.login.example.org", "login..example.org", "*.example.org", "a" * 64 + ".example.org", "", " ",
        "é.example.org",
        ".".join(["a" * 60] * 4),
    ],
)  # fmt: skip
def test_names_that_no_tenant_may_use_are_refused_and_not_stored(api: Management, tenant: Tenant, host: str) -> None:
    answer = api.post("custom-domains", {"domain": host, "type": "self_managed_certs"})
    assert (answer.status, answer.json["errorCode"]) == (400, "invalid_body")
    assert "domain" in answer.json["message"]
    assert CustomDomain.objects.of(tenant.pk).count() == 1


def test_the_host_of_the_platform_is_refused(api: Management, settings: Settings) -> None:
    settings.PLATFORM_HOST = "platform.example.org"
    assert api.post("custom-domains", {"domain": "platform.example.org", "type": "self_managed_certs"}).status == 400


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ({"custom_client_ip_header": "cf-connecting-ip"}, "operation_not_supported"),
        ({"relying_party_identifier": "example.org"}, "operation_not_supported"),
        ({"tls_policy": "compatible"}, "invalid_body"),
        ({"type": "none"}, "invalid_body"),
        ({"domain_metadata": {f"k{number}": "v" for number in range(11)}}, "invalid_body"),
        ({"domain_metadata": {"k": 1}}, "invalid_body"),
        ({"domain_metadata": {"k": "v" * 256}}, "invalid_body"),
        ({"is_default": True}, "invalid_body"),
    ],
)
def test_values_for_unsupported_features_are_refused(api: Management, tenant: Tenant, host: str, members: Any, code: str) -> None:
    answer = api.post("custom-domains", {"domain": host, "type": "self_managed_certs", **members})
    assert (answer.status, answer.json["errorCode"]) == (400, code)
    assert CustomDomain.objects.of(tenant.pk).count() == 1


def test_metadata_is_merged_and_an_empty_map_clears_it(api: Management, host: str) -> None:
    domain = add(api, host, domain_metadata={"a": "1", "b": "2"}, custom_client_ip_header="x-forwarded-for")
    path = f"custom-domains/{domain['custom_domain_id']}"
    changed = api.patch(path, {"domain_metadata": {"b": None, "c": "3"}, "custom_client_ip_header": None, "tls_policy": "recommended"})
    assert changed.json["domain_metadata"] == {"a": "1", "c": "3"}
    assert "custom_client_ip_header" not in changed.json
    assert api.patch(path, {"domain_metadata": {f"k{number}": "v" for number in range(9)}}).status == 400
    assert api.get(path).json == changed.json
    assert "domain_metadata" not in api.patch(path, {"domain_metadata": {}}).json
    assert api.patch(path, {}).status == 200
    assert api.patch(path, {"domain": "other.example.org"}).status == 400


def test_the_list_is_an_object_only_if_the_request_has_the_parameter_take(api: Management, tenant: Tenant) -> None:
    for name in ("b", "a", "c"):
        add(api, f"{name}.{tenant.pk}.example.org")
    assert [domain["domain"][0] for domain in api.get("custom-domains").json] == ["b", "a", "c"]
    assert [domain["domain"][0] for domain in api.get("custom-domains", {"sort": "domain:1"}).json] == ["a", "b", "c"]
    assert api.get("custom-domains", {"fields": "domain"}).json[0].keys() == {"domain"}
    taken = api.get("custom-domains", {"take": 2}).json
    rest = api.get("custom-domains", {"take": 2, "from": taken["next"]}).json
    assert [domain["domain"][0] for domain in taken["custom_domains"] + rest["custom_domains"]] == ["b", "a", "c"]
    assert [api.get("custom-domains", query).status for query in ({"q": "domain:a"}, {"sort": "domain:-1"}, {"fields": "x"})] == [400] * 3


def test_the_canonical_domain_is_not_a_custom_domain(api: Management, tenant: Tenant) -> None:
    canonical = CustomDomain.objects.of(tenant.pk).get(is_canonical=True)
    path = f"custom-domains/{canonical.pk}"
    assert api.get("custom-domains").json == []
    for answer in (api.get(path), api.patch(path, {}), api.post(f"{path}/verify"), api.post(f"{path}/test")):
        assert (answer.status, answer.json["errorCode"]) == (404, "inexistent_custom_domain")
    assert api.delete(path).status == 204
    assert CustomDomain.objects.of(tenant.pk).filter(pk=canonical.pk).exists()
    assert api.post("custom-domains", {"domain": canonical.host, "type": "self_managed_certs"}).status == 409


def test_links_use_the_default_domain_which_must_be_verified(api: Management, tenant: Tenant, server: NameServer, host: str) -> None:
    domain = add(api, host)
    canonical = f"{tenant.pk}.example.test"
    assert api.get("custom-domains/default").json == {"domain": canonical}
    for refused in (host, "unknown.example.org", make_other_tenant().pk + ".example.test"):
        assert api.patch("custom-domains/default", {"domain": refused}).status == 400
    publish(server, domain)
    verify(api, domain)
    chosen = api.patch("custom-domains/default", {"domain": host}).json
    assert (chosen["custom_domain_id"], chosen["is_default"], chosen["primary"]) == (domain["custom_domain_id"], True, True)
    assert default_address(tenant.pk) == f"http://{host}"
    assert api.delete(f"custom-domains/{domain['custom_domain_id']}").status == 409
    assert api.patch("custom-domains/default", {"domain": canonical}).json == {"domain": canonical}
    assert default_address(tenant.pk) == f"http://{canonical}"

    assert api.patch("custom-domains/default", {"domain": host}).status == 200
    domains.remove_domain(tenant_id=tenant.pk, domain_id=domain["custom_domain_id"], is_by_operator=True)
    assert default_address(tenant.pk) == f"http://{canonical}"
    assert resolve_host(host) is None
    assert api.delete(f"custom-domains/{domain['custom_domain_id']}").status == 204


def test_links_and_tokens_never_use_a_domain_that_is_not_verified(tenant: Tenant, host: str) -> None:
    # A restored backup or a change by SQL can contain a default domain that is not verified.
    CustomDomainFactory.create(tenant=tenant, host=host, is_default=True, verified_at=None)
    canonical = f"{tenant.pk}.example.test"
    assert default_address(tenant.pk) == f"http://{canonical}"
    assert hosts_of(tenant.pk) == {canonical}
    assert tenant_at(host) is None


def test_a_domain_test_requires_a_verified_domain_and_describes_the_problem(
    api: Management, server: NameServer, tenant: Tenant, host: str
) -> None:
    domain = add(api, host)
    path = f"custom-domains/{domain['custom_domain_id']}/test"
    assert api.post(path).status == 409
    domains.verify_domain(tenant_id=tenant.pk, domain_id=domain["custom_domain_id"])
    answer = api.post(path)
    assert (answer.status, answer.json["success"]) == (200, False)
    assert answer.json["message"]


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"issuer": 1}', b"[" * 100_000, b"\xff", b"null"])
def test_a_response_that_is_not_a_discovery_document_names_no_issuer(body: bytes) -> None:
    assert issuer_of(body) is None


def test_the_discovery_document_of_a_custom_domain_names_the_domain_as_issuer(api: Management, tenant: Tenant, host: str) -> None:
    domain = add(api, host)
    domains.verify_domain(tenant_id=tenant.pk, domain_id=domain["custom_domain_id"])
    assert issuer_of(request("GET", "/.well-known/openid-configuration", "", {"host": host}, b"").body) == f"http://{host}/"


def test_the_number_of_domains_of_a_tenant_is_limited(api: Management, tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(domains, "MOST_DOMAINS", 2)
    add(api, f"a.{tenant.pk}.example.org")
    assert api.post("custom-domains", {"domain": f"b.{tenant.pk}.example.org", "type": "self_managed_certs"}).status == 409


def test_reading_and_writing_custom_domains_require_scopes(tenant: Tenant, host: str) -> None:
    reader, writer = Management(tenant, scope="read:custom_domains"), Management(tenant, scope="create:custom_domains")
    domain = add(writer, host)
    path = f"custom-domains/{domain['custom_domain_id']}"
    assert [reader.get(path).status, writer.get(path).status] == [200, 403]
    assert [reader.post(f"{path}/verify").status, reader.patch(path, {}).status, reader.delete(path).status] == [403, 403, 403]
    assert reader.patch("custom-domains/default", {"domain": host}).status == 403
    assert reader.get(f"custom-domains/{UNKNOWN}").json["errorCode"] == "inexistent_custom_domain"
