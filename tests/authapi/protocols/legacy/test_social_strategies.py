"""`/oauth/access_token` with tokens of social providers. Each provider names the application of a token in
its own format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from authapi.models import SignIn
from authapi.upstream import metadata
from authapi.upstream.social.known_providers import KNOWN
from identity.models import Connection, User
from identity.services.connections import create_connection
from tests.authapi.asgi_client import Received
from tests.authapi.protocols.legacy.conftest import OldClient, refusal
from tests.factories.provider import CLIENT_ID
from tests.factories.scim import reply
from tests.factories.social_provider import ACCESS_TOKEN, OPTIONS, SocialProvider, social_provider

INVALID = (401, "invalid_request", "invalid access_token: invalid_token")
# For each strategy: the endpoint to which the service sends the token, and the answer for a token that was issued to our client.
SAID: dict[str, tuple[str, dict[str, Any]]] = {
    "google-oauth2": ("tokeninfo_endpoint", {"aud": CLIENT_ID, "azp": CLIENT_ID, "sub": "1122"}),
    "github": ("token_check_endpoint", {"app": {"client_id": CLIENT_ID}, "user": {"id": 583231}}),
    "facebook": ("debug_token_endpoint", {"data": {"app_id": CLIENT_ID, "is_valid": True, "user_id": "10158"}}),
    "linkedin": ("introspection_endpoint", {"active": True, "client_id": CLIENT_ID, "status": "active"}),
}
# Answers for a token of another application or user, answers for an invalid token, and answers without the required members.
FOREIGN: list[tuple[str, dict[str, Any]]] = [
    ("google-oauth2", {"aud": "another", "azp": "another", "sub": "1122"}),
    ("google-oauth2", {"aud": CLIENT_ID, "azp": "another", "sub": "1122"}),
    ("google-oauth2", {"aud": "another", "azp": CLIENT_ID, "sub": "1122"}),
    ("google-oauth2", {"aud": CLIENT_ID, "azp": CLIENT_ID, "sub": "another"}),
    ("google-oauth2", {"aud": CLIENT_ID}),
    ("google-oauth2", {}),
    ("github", {"app": {"client_id": "another"}, "user": {"id": 583231}}),
    ("github", {"app": {"client_id": CLIENT_ID}, "user": {"id": 1}}),
    ("github", {"user": {"id": 583231}}),
    ("facebook", {"data": {"app_id": "another", "is_valid": True, "user_id": "10158"}}),
    ("facebook", {"data": {"app_id": CLIENT_ID, "is_valid": False, "user_id": "10158"}}),
    ("facebook", {"data": {"app_id": CLIENT_ID, "is_valid": "true", "user_id": "10158"}}),
    ("facebook", {"data": {"app_id": CLIENT_ID, "is_valid": True, "user_id": "1"}}),
    ("facebook", {"data": []}),
    ("linkedin", {"active": False, "client_id": CLIENT_ID}),
    ("linkedin", {"active": "true", "client_id": CLIENT_ID}),
    ("linkedin", {"active": True, "client_id": "another"}),
    ("linkedin", {"active": True}),
]


@dataclass
class Social:
    """An old client whose users have tokens of a social provider."""

    old: OldClient
    provider: SocialProvider
    connection: Connection

    def ask(self, **changes: Any) -> Received:
        form = {"client_id": self.old.client.client_id, "access_token": ACCESS_TOKEN, "connection": self.connection.name}
        return self.old.ask("/oauth/access_token", {**form, "scope": "openid", **changes})

    def says(self, answer: Any, status: int = 200) -> None:
        self.provider.answers[SAID[self.provider.strategy][0]] = reply(status, answer)

    @property
    def users(self) -> list[User]:
        return list(User.objects.of(self.old.tenant.pk).filter(connection=self.connection))


@pytest.fixture
def at(old: OldClient, settings: Settings) -> Iterator[Callable[..., Social]]:
    metadata.documents.clear()
    with ExitStack() as running:

        def begin(strategy: str, **options: Any) -> Social:
            provider = running.enter_context(social_provider(strategy))
            settings.PROVIDER_ADDRESSES = {strategy: provider.addresses}
            connection = create_connection(
                tenant_id=old.tenant.pk,
                name="social",
                strategy=strategy,
                enabled_clients=[old.client.client_id],
                options={**OPTIONS[strategy], **options},
            )
            made = Social(old, provider, connection)
            if strategy in SAID:
                made.says(SAID[strategy][1])
            return made

        yield begin
    metadata.documents.clear()


@pytest.mark.parametrize("strategy", SAID)
def test_a_token_issued_to_our_client_logs_its_user_in(at: Callable[..., Social], strategy: str) -> None:
    social = at(strategy)
    assert social.ask().status == 200
    assert social.provider.refused == []
    (user,) = social.users
    assert user.name == "Ada Lovelace"


@pytest.mark.parametrize(("strategy", "said"), FOREIGN)
def test_a_token_of_another_application_or_user_is_refused(at: Callable[..., Social], strategy: str, said: dict[str, Any]) -> None:
    social = at(strategy)
    social.says(said)
    assert refusal(social.ask()) == INVALID
    assert social.users == []


@pytest.mark.parametrize(("strategy", "status"), [("google-oauth2", 400), ("github", 404), ("facebook", 400), ("linkedin", 401)])
def test_a_token_that_is_unknown_to_the_provider_is_refused(at: Callable[..., Social], strategy: str, status: int) -> None:
    social = at(strategy)
    social.says({"error": "invalid_token"}, status)
    assert refusal(social.ask()) == INVALID


@pytest.mark.parametrize("strategy", sorted(KNOWN.keys() - SAID.keys()))
def test_a_token_is_refused_if_the_provider_does_not_name_the_application_of_the_token(at: Callable[..., Social], strategy: str) -> None:
    social = at(strategy)
    status, error, words = refusal(social.ask())
    assert (status, error) == (400, "invalid_request")
    assert "does not say to which application it issued a token" in words
    assert social.provider.paths == []


@pytest.mark.parametrize("said", [{"aud": CLIENT_ID, "azp": "our-phone-app", "sub": "1122"}, {"aud": CLIENT_ID, "sub": "1122"}])
def test_google_tokens_of_our_other_apps_are_accepted_if_a_connection_lists_the_apps(
    at: Callable[..., Social], said: dict[str, Any]
) -> None:
    social = at("google-oauth2", allowed_audiences=["our-phone-app"])
    social.says(said)
    assert social.ask().status == 200


def test_google_accounts_of_other_workspace_domains_are_refused(at: Callable[..., Social]) -> None:
    social = at("google-oauth2", hosted_domains=["corp.example.test"])
    assert refusal(social.ask()) == INVALID
    assert "hosted_domains" in SignIn.objects.of(social.old.tenant.pk).get().description


def test_a_connection_without_a_secret_sends_no_request(at: Callable[..., Social]) -> None:
    social = at("facebook", client_secret=None)
    assert social.ask().status == 500
    assert social.provider.paths == []


def test_the_token_is_not_logged(at: Callable[..., Social], caplog: pytest.LogCaptureFixture) -> None:
    social = at("facebook")
    with caplog.at_level("DEBUG"):
        social.ask()
        social.says({"data": {}})
        social.ask()
    assert ACCESS_TOKEN not in caplog.text
    assert ACCESS_TOKEN not in repr(SignIn.objects.of(social.old.tenant.pk).values())
