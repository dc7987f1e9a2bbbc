"""Metadata that providers publish at a URL: fetched when it is needed, stored, and fetched again."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection as database
from django.db.models import QuerySet
from django.utils import timezone

from authapi.models import ProviderMetadata, SignIn
from authapi.upstream.metadata_refresh import due_metadata, refresh, source_of
from authapi.upstream.saml.connections import saml_provider
from identity.models import Connection, Tenant
from identity.services.connections import update_connection
from tests.factories.saml_login import SamlLogin, saml_login
from tests.factories.saml_provider import ENTITY_ID, OTHER, SIGNING, metadata
from tests.factories.scim import MisbehavingServer, Received, misbehaving_server, reply


@dataclass
class Published:
    """A server that publishes the metadata of a provider. Before the metadata, it sends the answers in `answers`."""

    server: MisbehavingServer
    answers: list[bytes] = field(default_factory=list)
    document: bytes = b""

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server.port}/metadata"

    @property
    def count(self) -> int:
        return len(self.server.received)

    def answer(self, _request: Received) -> bytes:
        return self.answers.pop(0) if self.answers else reply(200, raw=self.document)


@pytest.fixture
def published() -> Iterator[Published]:
    made: list[Published] = []
    with misbehaving_server(lambda request: made[0].answer(request)) as server:
        made.append(Published(server, document=metadata()))
        yield made[0]


def login_by(tenant: Tenant, published: Published, **options: Any) -> SamlLogin:
    return saml_login(tenant, is_complete=False, metadataUrl=published.address, **options)


def kept(tenant: Tenant) -> ProviderMetadata:
    return ProviderMetadata.objects.of(tenant.pk).get()


def make_due(tenant: Tenant, **more: Any) -> None:
    long_ago = timezone.now() - timedelta(hours=2)
    ProviderMetadata.objects.of(tenant.pk).update(**{"due_at": long_ago, "tried_at": long_ago, **more})


def test_the_first_login_fetches_the_document_and_later_logins_use_the_stored_document(tenant: Tenant, published: Published) -> None:
    login = login_by(tenant, published)
    assert "code" in login.log_in()
    assert "code" in login.log_in(prompt="login")
    assert published.count == 1
    row = kept(tenant)
    assert row.document is not None
    assert (row.problem, row.document["entity_id"]) == ("", ENTITY_ID)
    assert timedelta(hours=23) < row.due_at - timezone.now() <= timedelta(hours=24)


def test_an_assertion_whose_issuer_is_not_in_the_document_is_refused(tenant: Tenant, published: Published) -> None:
    login = login_by(tenant, published)
    assert "error" in login.log_in({"issuer": "https://attacker.example.test"})


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (reply(500, {}), "answered 500"),
        (reply(302, {}, headers={"Location": "/elsewhere"}), "It must answer with the document itself"),
        (reply(200, raw=b"<html/>"), "begins with html"),
        (reply(200, raw=b"<!DOCTYPE x><x/>"), "document type"),
        (reply(200, raw=b"x" * 1_100_000), "maximum size"),
    ],
)
def test_the_error_for_an_unavailable_document_explains_why(tenant: Tenant, published: Published, answer: bytes, problem: str) -> None:
    login = login_by(tenant, published)
    published.answers.append(answer)
    assert login.go().status_code == 502
    assert problem in kept(tenant).problem
    assert problem in SignIn.objects.of(tenant.pk).filter(is_success=False).latest("created_at").description
    # After a failed fetch, the service waits before it fetches again. Until then, further logins cause no request.
    assert login.go().status_code == 502
    assert published.count == 1


def test_no_request_is_sent_to_private_addresses(tenant: Tenant, published: Published, settings: Any) -> None:
    settings.OUTBOUND_PRIVATE_NETWORKS = []
    assert login_by(tenant, published).go().status_code == 502
    assert published.count == 0


def test_the_scheduled_task_fetches_only_due_documents(tenant: Tenant, published: Published) -> None:
    login = login_by(tenant, published)
    login.log_in()
    row = kept(tenant)
    assert row.pk not in due_metadata()
    assert refresh(row.pk) is False
    published.document = metadata(SIGNING.text, OTHER.text)
    make_due(tenant)
    assert row.pk in due_metadata()
    assert refresh(row.pk) is True
    assert refresh(row.pk) is False
    assert saml_provider(login.connection).certificates == (SIGNING.known, OTHER.known)
    assert published.count == 2


def test_a_url_that_fails_for_a_while_does_not_prevent_logins(tenant: Tenant, published: Published) -> None:
    login = login_by(tenant, published)
    login.log_in()
    make_due(tenant)
    published.answers.append(reply(503, {}))
    assert refresh(kept(tenant).pk) is False
    row = kept(tenant)
    assert "503" in row.problem
    assert row.document is not None
    assert timedelta(minutes=50) < row.due_at - timezone.now() <= timedelta(hours=1)
    assert "code" in login.log_in(prompt="login")


def test_the_stored_document_is_dropped_when_the_url_changes(tenant: Tenant, published: Published) -> None:
    login = login_by(tenant, published)
    login.log_in()
    moved = f"{published.address}/moved"
    update_connection(tenant_id=tenant.pk, connection_id=login.connection.pk, changes={"options": {"metadataUrl": moved}})
    published.answers.append(reply(404, {}))
    assert login.go(prompt="login").status_code == 502
    row = kept(tenant)
    assert (row.address, row.document) == (moved, None)


def test_an_unknown_key_causes_a_fetch_unless_the_document_was_fetched_within_a_minute(tenant: Tenant, published: Published) -> None:
    login = login_by(tenant, published)
    login.log_in()
    published.document = metadata(OTHER.text)
    # The document was fetched less than a minute ago, so an unknown key does not cause another fetch.
    assert "error" in login.log_in({"key": OTHER}, prompt="login")
    assert published.count == 1
    make_due(tenant, due_at=timezone.now() + timedelta(hours=5))
    assert "code" in login.log_in({"key": OTHER}, prompt="login")
    assert published.count == 2


def test_only_one_of_two_simultaneous_processes_fetches_the_document(tenant: Tenant, published: Published) -> None:
    login = login_by(tenant, published)
    login.log_in()
    make_due(tenant)
    row = kept(tenant)
    results: list[bool] = []

    def run() -> None:
        try:
            results.append(refresh(row.pk))
        finally:
            database.close()

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    assert sorted(results) == [False, True]
    assert published.count == 2


def test_the_stored_document_is_dropped_when_the_connection_no_longer_names_a_url(tenant: Tenant, published: Published) -> None:
    login = login_by(tenant, published)
    login.log_in()
    options = {"signInEndpoint": "https://idp.example.test/sso", "signingCert": SIGNING.text}
    changed = update_connection(tenant_id=tenant.pk, connection_id=login.connection.pk, changes={"options": options})
    assert source_of(changed) is None
    make_due(tenant)
    assert refresh(kept(tenant).pk) is False
    assert not ProviderMetadata.objects.of(tenant.pk).exists()


def test_a_pasted_document_needs_no_url(tenant: Tenant, published: Published) -> None:
    login = login_by(tenant, published, metadataXml=metadata(OTHER.text).decode())
    assert "code" in login.log_in({"key": OTHER})
    assert published.count == 0


def test_options_that_this_version_refuses_put_off_the_next_fetch_and_store_the_reason(tenant: Tenant, published: Published) -> None:
    login = login_by(tenant, published)
    login.log_in()
    options = {**login.connection.options, "signatureAlgorithm": "rsa-md5"}
    QuerySet.update(Connection.objects.of(tenant.pk).filter(pk=login.connection.pk), options=options)
    make_due(tenant)
    assert refresh(kept(tenant).pk) is False
    assert "signatureAlgorithm must be one of" in kept(tenant).problem
    assert kept(tenant).pk not in due_metadata()
