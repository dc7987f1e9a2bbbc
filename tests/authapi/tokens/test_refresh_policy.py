"""The policy for refresh tokens: defaults, lifetimes, and what the management interface shows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from authapi.tokens.refresh_policy import DEFAULT_IDLE_SECONDS, DEFAULT_SECONDS, refresh_policy, shown_policy

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("settings", [None, {}, {"token_lifetime": None, "idle_token_lifetime": None, "leeway": None}])
def test_a_token_without_settings_expires_after_the_default_lifetimes(settings: dict[str, Any] | None) -> None:
    policy = refresh_policy(settings, is_public=False)
    assert policy.expires_at(NOW) == NOW + timedelta(days=30)
    assert policy.idle_expires_at(NOW) == NOW + timedelta(days=15)
    assert (policy.is_rotating, policy.leeway, dict(policy.audiences)) == (False, timedelta(0), {})


def test_the_settings_replace_each_default() -> None:
    settings = {"rotation_type": "non-rotating", "leeway": 7, "token_lifetime": 100, "idle_token_lifetime": 60}
    policy = refresh_policy({**settings, "policies": [{"audience": "urn:a", "scope": ["read"]}]}, is_public=True)
    assert (policy.expires_at(NOW), policy.idle_expires_at(NOW)) == (NOW + timedelta(seconds=100), NOW + timedelta(seconds=60))
    assert (policy.is_rotating, policy.leeway, dict(policy.audiences)) == (False, timedelta(seconds=7), {"urn:a": ("read",)})


def test_each_lifetime_can_be_infinite_by_itself() -> None:
    absolute = refresh_policy({"infinite_token_lifetime": True}, is_public=False)
    assert (absolute.expires_at(NOW), absolute.idle_expires_at(NOW)) == (None, NOW + timedelta(seconds=DEFAULT_IDLE_SECONDS))
    idle = refresh_policy({"infinite_idle_token_lifetime": True}, is_public=False)
    assert (idle.expires_at(NOW), idle.idle_expires_at(NOW)) == (NOW + timedelta(seconds=DEFAULT_SECONDS), None)


@pytest.mark.parametrize(("is_public", "rotation"), [(True, "rotating"), (False, "non-rotating")])
def test_unset_members_are_shown_with_their_defaults(is_public: bool, rotation: str) -> None:
    assert shown_policy({"leeway": None}, is_public=is_public) == {
        "rotation_type": rotation,
        "expiration_type": "expiring",
        "leeway": 0,
        "token_lifetime": 2_592_000,
        "idle_token_lifetime": 1_296_000,
        "infinite_token_lifetime": False,
        "infinite_idle_token_lifetime": False,
    }


def test_tokens_that_do_not_expire_are_shown_with_infinite_lifetimes() -> None:
    shown = shown_policy({"expiration_type": "non-expiring", "leeway": 3}, is_public=True)
    assert (shown["infinite_token_lifetime"], shown["infinite_idle_token_lifetime"]) == (True, True)
    assert (shown["expiration_type"], shown["leeway"]) == ("non-expiring", 3)


def test_a_member_that_is_set_is_shown_instead_of_its_default() -> None:
    settings = {"rotation_type": "non-rotating", "infinite_idle_token_lifetime": True, "token_lifetime": 5, "idle_token_lifetime": 4}
    shown = shown_policy(settings, is_public=True)
    assert {name: shown[name] for name in settings} == settings
