"""`/oauth/access_token`: the token of a provider is accepted only if the provider says that the token was issued to our client."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from authapi.models import SignIn
from authapi.protocols.legacy.opting_in import SOCIAL_TOKEN
from authapi.upstream import metadata
from identity.models import Connection, User
from identity.services.connections import create_connection
from identity.services.users import update_user
from tests.authapi.asgi_client import Received, read_profile
from tests.authapi.forging import decoded
from tests.authapi.protocols.legacy.conftest import GRANTS, OldClient, change, refusal
from tests.factories.provider import CLIENT_ID, SECRET, Provider
from tests.factories.provider import provider as running_provider
from tests.factories.scim import reply

INVALID = (401, "invalid_request", "invalid access_token: invalid_token")
PERSON: dict[str, Any] = {"sub": "248289", "email": "ada@corp.example.test", "email_verified": True, "name": "Ada"}


@dataclass
class Social:
    """An old client whose users have tokens of a provider."""

    old: OldClient
    provider: Provider
    connection: Connection

    def ask(self, **changes: Any) -> Received:
        form = {"client_id": self.old.client.client_id, "access_token": "of-the-provider", "connection": self.connection.name}
        return self.old.ask("/oauth/access_token", {**form, "scope": "openid", **changes})

    def says(self, path: str, status: int = 200, **members: Any) -> None:
        self.provider.answers[path] = reply(status, members)


@pytest.fixture
def social(old: OldClient) -> Iterator[Social]:
    metadata.documents.clear()
    with running_provider() as provider:
        options = {"client_id": CLIENT_ID, "client_secret": SECRET, "issuer": provider.issuer}
        connection = create_connection(
            tenant_id=old.tenant.pk, name="corp", strategy="oidc", enabled_clients=[old.client.client_id], options=options
        )
        provider.discovery["introspection_endpoint"] = f"{provider.issuer}/introspect"
        made = Social(old, provider, connection)
        made.says("/introspect", active=True, client_id=CLIENT_ID, sub="248289")
        made.says("/userinfo", **PERSON)
        yield made
    metadata.documents.clear()


@pytest.mark.parametrize("missing", ["client_id", "access_token", "connection"])
def test_the_refusal_names_a_missing_parameter(social: Social, missing: str) -> None:
    assert refusal(social.ask(**{missing: None})) == (400, "invalid_request", f"missing {missing} parameter")


def test_a_client_without_the_grant_is_refused(social: Social) -> None:
    change(social.old.client, grant_types=[grant for grant in GRANTS if grant != SOCIAL_TOKEN])
    words = f"Grant type '{SOCIAL_TOKEN}' not allowed for the client."
    assert refusal(social.ask()) == (403, "unauthorized_client", words)
    assert refusal(social.ask(client_id="nobody")) == (403, "unauthorized_client", "invalid client")


def test_the_refusal_names_an_unusable_connection(social: Social) -> None:
    assert refusal(social.ask(connection="nowhere")) == (400, "invalid_request", "the connection was not found")
    words = "specified strategy does not support requested operation"
    assert refusal(social.ask(connection=social.old.connection.name)) == (400, "invalid_request", words)


def test_a_token_issued_to_our_client_logs_its_user_in(social: Social) -> None:
    answer = social.ask()
    assert answer.status == 200, answer.body
    members = answer.json()
    user = User.objects.of(social.old.tenant.pk).get(connection=social.connection)
    assert (user.email, decoded(members["id_token"])[1]["sub"]) == (PERSON["email"], user.user_id)
    assert decoded(members["id_token"])[1]["amr"] == ["federated"]
    assert read_profile(social.old.tenant, members["access_token"]).json()["sub"] == user.user_id
    assert SignIn.objects.of(social.old.tenant.pk).get().type == "s"
    asked = next(request for request in social.provider.server.received if request.path == "/introspect")
    assert asked.headers["authorization"].startswith("Basic ")


def test_a_token_of_another_application_is_refused(social: Social) -> None:
    social.says("/introspect", active=True, client_id="another-application", sub="248289")
    assert refusal(social.ask()) == INVALID
    assert not User.objects.of(social.old.tenant.pk).filter(connection=social.connection).exists()
    assert "another application" in SignIn.objects.of(social.old.tenant.pk).get().description
    assert "/userinfo" not in social.provider.paths


@pytest.mark.parametrize("told", [{"active": False}, {"active": "true", "client_id": CLIENT_ID, "sub": "248289"}, {"sub": "248289"}, {}])
def test_a_token_that_the_provider_does_not_report_as_active_is_refused(social: Social, told: dict[str, Any]) -> None:
    social.says("/introspect", **told)
    assert refusal(social.ask()) == INVALID


def test_a_userinfo_response_about_another_user_is_refused(social: Social) -> None:
    social.says("/userinfo", **{**PERSON, "sub": "another"})
    assert refusal(social.ask()) == INVALID


def test_a_token_is_refused_if_the_provider_does_not_name_the_application_of_the_token(social: Social) -> None:
    del social.provider.discovery["introspection_endpoint"]
    status, error, words = refusal(social.ask())
    assert (status, error) == (400, "invalid_request")
    assert "does not say to which application it issued a token" in words


def test_the_refusal_names_an_unavailable_provider(social: Social) -> None:
    social.says("/introspect", 500)
    assert refusal(social.ask())[:2] == (503, "temporarily_unavailable")


@pytest.mark.parametrize("token", ["with space", "é", "x" * 9000])
def test_a_malformed_token_is_not_sent_to_the_provider(social: Social, token: str) -> None:
    assert refusal(social.ask(access_token=token)) == INVALID
    assert social.provider.paths == []


def test_the_refusal_says_that_a_user_is_blocked(social: Social) -> None:
    social.ask()
    user = User.objects.of(social.old.tenant.pk).get(connection=social.connection)
    update_user(tenant_id=social.old.tenant.pk, user_id=user.user_id, changes={"blocked": True})
    assert refusal(social.ask()) == (401, "unauthorized", "user is blocked")


def test_the_token_is_not_logged(social: Social, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG"):
        social.ask(access_token="canary-token-of-the-provider")
        social.says("/introspect", active=False)
        social.ask(access_token="canary-token-of-the-provider")
    assert "canary-token" not in caplog.text
    assert "canary-token" not in repr(SignIn.objects.of(social.old.tenant.pk).values())
