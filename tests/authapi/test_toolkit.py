"""The installed OAuth toolkit: its six models are replaced, RFC 9700 is enforced by default, and its own pages are unreachable."""

from __future__ import annotations

import inspect
from itertools import combinations

import pytest
from django.conf import settings
from django.contrib import admin
from django.core.management import call_command
from django.urls import get_resolver
from oauth2_provider import models as toolkit
from oauth2_provider.scopes import get_scopes_backend
from oauth2_provider.settings import DEFAULTS, oauth2_settings

from authapi.api.client_bodies import APP_TYPES
from authapi.api.client_documents import defaults_of
from authapi.grants.password import PasswordGrant, PasswordRealmGrant
from authapi.models import Client
from authapi.protocols.oauth.engine import Server, Validator, server
from authapi.protocols.oauth.response_types import CodeResponse, TokenResponse
from identity.models import User

ROPC = (PasswordGrant.name, PasswordRealmGrant.name)
GETTERS = [
    toolkit.get_application_model,
    toolkit.get_grant_model,
    toolkit.get_access_token_model,
    toolkit.get_refresh_token_model,
    toolkit.get_id_token_model,
    toolkit.get_device_grant_model,
]


def test_all_six_models_are_ours_and_refer_to_end_users() -> None:
    for getter in GETTERS:
        model = getter()
        assert model._meta.app_label == "authapi"
        assert model._meta.get_field("user").related_model is User


# The contract requires these features. A client enables the grants by its grant types, and the PKCE method `plain` by a setting.
LEFT_TO_CLIENTS = {"IMPLICIT_GRANT", "PASSWORD_GRANT", "PKCE_METHOD"}


def test_every_recommendation_of_rfc_9700_is_enforced_except_three_that_clients_may_relax() -> None:
    prefix = "COMPLIANT_BCP_RFC9700_"
    gates = {name.removeprefix(prefix) for name in DEFAULTS if name.startswith(prefix)}
    assert len(gates) == 10
    assert {name.removeprefix(prefix) for name in settings.OAUTH2_PROVIDER if name.startswith(prefix)} == gates
    assert {name for name in gates if not getattr(oauth2_settings, prefix + name)} == LEFT_TO_CLIENTS


def test_every_recommendation_is_enforced_by_default() -> None:
    assert not {"implicit", *ROPC} & set(Client().grant_types)
    for app_type in APP_TYPES:
        assert not {"implicit", *ROPC} & set(defaults_of(app_type).get("grant_types", ()))


def test_the_checks_of_the_toolkit_find_nothing(committed_db: None, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("check", deploy=True, fail_level="CRITICAL")
    assert "oauth2_provider." not in capsys.readouterr().err


def test_the_admin_of_the_toolkit_is_never_registered() -> None:
    assert not [model for model in admin.site._registry if model._meta.app_label == "authapi"]


def test_no_view_of_the_toolkit_has_a_url() -> None:
    def callbacks(patterns: list[object]) -> list[object]:
        found: list[object] = []
        for pattern in patterns:
            found += callbacks(pattern.url_patterns) if hasattr(pattern, "url_patterns") else [pattern.callback]  # type: ignore[attr-defined]
        return found

    modules = [getattr(inspect.unwrap(callback), "__module__", "") for callback in callbacks(get_resolver().url_patterns)]  # type: ignore[arg-type]
    assert not [module for module in modules if module.startswith("oauth2_provider")]


def test_the_toolkit_creates_our_server_with_our_validator() -> None:
    made = server()
    assert type(made) is Server
    assert type(made.request_validator) is Validator
    assert server() is made


def test_all_response_types_use_our_classes_and_the_type_none_does_not_exist() -> None:
    handlers = server().response_types
    assert {frozenset(name.split()) for name in handlers} == {
        frozenset(words) for size in (1, 2, 3) for words in combinations(("code", "token", "id_token"), size)
    }
    for name, handler in handlers.items():
        assert type(handler) is (CodeResponse if "code" in name.split() else TokenResponse)
    assert server().default_response_type_handler is handlers["code"]


def test_there_is_no_default_scope() -> None:
    backend = get_scopes_backend()
    assert (backend.get_all_scopes(), backend.get_available_scopes(), backend.get_default_scopes()) == ({}, [], [])
