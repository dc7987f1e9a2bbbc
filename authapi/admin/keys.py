"""Admin pages of signing keys and revoked tokens."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from authapi.models import RevokedToken, SigningKey
from authapi.tokens.keys import revoke_key, rotate_keys
from foundation.admin.badges import Tone, badge
from identity.admin.object_actions import ObjectAction, ObjectActionsAdmin
from identity.admin.tenant_scope import ReadOnlyAdmin

_TONES: dict[str, Tone] = {
    SigningKey.State.CURRENT: "good",
    SigningKey.State.NEXT: "warn",
    SigningKey.State.PREVIOUS: "quiet",
    SigningKey.State.REVOKED: "bad",
}


def _rotate(_request: HttpRequest, row: SigningKey, _values: dict[str, Any]) -> str:
    return f"Key {rotate_keys(row.tenant_id).kid} is now current."


def _revoke(_request: HttpRequest, row: SigningKey, _values: dict[str, Any]) -> str:
    revoke_key(row.tenant_id, row.kid)
    return f"Key {row.kid} revoked."


class SigningKeyAdmin(ReadOnlyAdmin[SigningKey], ObjectActionsAdmin[SigningKey]):
    grows = False
    list_display = ("kid", "state", "created_at", "rotated_at", "verifies_until", "tenant")
    list_filter = ("state",)
    list_select_related = ("tenant",)
    fields = ("tenant", "kid", "state", "public_jwk", "created_at", "current_since", "rotated_at", "verifies_until")
    empty_text = "No keys yet. The service creates the keys when it first needs them, for example to sign a token."
    object_actions = (
        ObjectAction(
            "rotate",
            "Rotate key",
            lambda _request, _row: (
                "The next key becomes current and signs new tokens, and a new next key is published. Tokens that the present "
                "key has signed stay valid."
            ),
            _rotate,
            is_offered=lambda row: row.state == SigningKey.State.CURRENT,
            needs_proof=True,
        ),
        ObjectAction(
            "revoke",
            "Revoke key",
            lambda _request, _row: (
                "All tokens that this key signed are refused at once. Revoke the key if an attacker may know its private part."
            ),
            _revoke,
            is_offered=lambda row: row.state != SigningKey.State.REVOKED,
            is_dangerous=True,
            needs_proof=True,
        ),
    )

    def badge_of(self, row: SigningKey) -> str:
        return badge(row.get_state_display(), _TONES[row.state])


class RevokedTokenAdmin(ReadOnlyAdmin[RevokedToken]):
    titled = "Revoked token {row.jti}"
    is_short_lived = True
    list_display = ("id", "created_at", "expires_at", "tenant")
    list_select_related = ("tenant",)
    fields = ("tenant", "created_at", "expires_at")
    empty_text = "No revoked tokens."
