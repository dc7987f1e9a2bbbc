"""Signing keys: `/keys/signing`, `/keys/signing/{kid}`, and their rotation and revocation."""

from __future__ import annotations

import base64
import hashlib
import textwrap
from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from authapi.models import SigningKey
from authapi.tokens.keys import UnknownKey, ensure_keys, revoke_key, rotate_keys
from foundation.api.endpoint import Endpoint
from foundation.api.list_schemas import PROJECTION, fields_of, reference
from foundation.api.operations import SWITCH, TEXT, TIME, Operation, Schema
from foundation.api.queries import projection_of
from foundation.api.refusals import not_supported
from foundation.timestamps import wire_time
from identity.services.failures import NotFound

_NO_KEY = "The signing key does not exist."
_ORDER = (SigningKey.State.CURRENT, SigningKey.State.NEXT, SigningKey.State.PREVIOUS)
_NAMED: Schema = {"type": "object", "required": ["kid", "cert"], "properties": {"kid": TEXT, "cert": TEXT, "revoked_at": TIME}}
COMPONENTS: dict[str, Schema] = {
    # No member is required, because the parameter `fields` may leave out any member.
    "SigningKey": {
        "type": "object",
        "properties": {
            **dict.fromkeys(("kid", "cert", "fingerprint", "thumbprint"), TEXT),
            **dict.fromkeys(("current", "next", "previous", "revoked"), SWITCH),
            **dict.fromkeys(("current_since", "current_until", "revoked_at"), TIME),
        },
    }
}
_FIELDS = fields_of(COMPONENTS["SigningKey"])


class SigningKeyEndpoint(Endpoint):
    """The keys that sign and verify a tenant's tokens."""

    operations: ClassVar[dict[str, Operation]] = {
        "list": Operation(
            "list_signing_keys",
            "List the keys that sign or verify",
            ("read:signing_keys",),
            200,
            {"type": "array", "items": reference("SigningKey")},
            parameters=PROJECTION,
        ),
        "retrieve": Operation(
            "get_signing_key", "Read a signing key", ("read:signing_keys",), 200, reference("SigningKey"), refuses=(404,)
        ),
    }

    def list(self, request: Request) -> Response:
        project = projection_of(request.query_params, _FIELDS)
        ensure_keys(self.tenant_id)
        rows = SigningKey.objects.exclude(state=SigningKey.State.REVOKED)
        ordered = sorted(rows, key=lambda row: (_ORDER.index(SigningKey.State(row.state)), -row.pk))
        return Response([project(signing_key(row)) for row in ordered])

    def retrieve(self, request: Request, kid: str) -> Response:
        return Response(signing_key(_key_at(kid)))


class KeyRotationEndpoint(Endpoint):
    """Rotates the signing keys."""

    operations: ClassVar[dict[str, Operation]] = {
        "create": Operation(
            "rotate_signing_keys",
            "Make the next key the current key; the response is the new next key",
            ("create:signing_keys update:signing_keys",),
            201,
            _NAMED,
        )
    }

    def create(self, request: Request) -> Response:
        rotate_keys(self.tenant_id)
        return Response(_named(SigningKey.objects.get(state=SigningKey.State.NEXT)), status=201)


class KeyRevocationEndpoint(Endpoint):
    """Revokes a signing key."""

    operations: ClassVar[dict[str, Operation]] = {
        "update": Operation(
            "revoke_signing_key",
            "Refuse all tokens that a previous key has signed",
            ("update:signing_keys",),
            200,
            _NAMED,
            refuses=(404,),
        )
    }

    def update(self, request: Request, kid: str) -> Response:
        key = _key_at(kid)
        if key.state in (SigningKey.State.CURRENT, SigningKey.State.NEXT):
            raise not_supported("The current and the next key cannot be revoked; rotate first.")
        try:
            revoke_key(self.tenant_id, kid)
        except UnknownKey:
            # The key is revoked already: a repeated call gets the same response.
            pass
        return Response(_named(_key_at(kid)))


def signing_key(row: SigningKey) -> dict[str, Any]:
    """Return the key as the management interface shows it."""
    digest = hashlib.sha1(_certificate(row), usedforsecurity=False).hexdigest()
    moments = {
        "current_since": row.current_since,
        "current_until": row.rotated_at,
        "revoked_at": row.verifies_until if row.state == SigningKey.State.REVOKED else None,
    }
    return {
        "kid": row.kid,
        "cert": _pem(row),
        "fingerprint": ":".join(textwrap.wrap(digest.upper(), 2)),
        "thumbprint": digest.upper(),
        **{state: row.state == state for state in ("current", "next", "previous")},
        "revoked": row.state == SigningKey.State.REVOKED,
        **{name: wire_time(moment) for name, moment in moments.items() if moment},
    }


def _named(row: SigningKey) -> dict[str, Any]:
    shown = signing_key(row)
    return {name: shown[name] for name in ("kid", "cert", "revoked_at") if name in shown}


def _key_at(kid: str) -> SigningKey:
    row = SigningKey.objects.filter(kid=kid).first()
    if row is None:
        raise NotFound(_NO_KEY)
    return row


def _certificate(row: SigningKey) -> bytes:
    return base64.b64decode(row.public_jwk["x5c"][0])


def _pem(row: SigningKey) -> str:
    lines = "\n".join(textwrap.wrap(row.public_jwk["x5c"][0], 64))
    return f"-----BEGIN CERTIFICATE-----\n{lines}\n-----END CERTIFICATE-----\n"
