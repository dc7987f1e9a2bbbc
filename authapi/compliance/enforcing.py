"""Enforces the rules of compliance levels at the endpoints. A violation is refused; the error text is the sentence of the rule."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import uuid4

from authapi.compliance.levels import broken, has, level_of
from authapi.compliance.rules import INTERACTION_IDS, ClientProof, ClientShape, Stage
from authapi.failures import RequestRefused
from authapi.failures.oauth import OAuthCase
from authapi.models import Client, ClientCredential

INTERACTION_HEADER = "x-fapi-interaction-id"
_UUID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_CASES = {
    case.failure.error: case
    for case in (
        OAuthCase.LEVEL_BREAKS_REQUEST,
        OAuthCase.LEVEL_BREAKS_CLIENT,
        OAuthCase.LEVEL_BREAKS_SETTINGS,
        OAuthCase.LEVEL_BREAKS_RESPONSE_TYPE,
        OAuthCase.LEVEL_BREAKS_PROOF,
        OAuthCase.LEVEL_BREAKS_TARGET,
    )
}


def check(level: str, stage: Stage, facts: Any) -> None:
    """Raise `RequestRefused` with the sentence of the first violated rule of the level."""
    for rule in broken(level, stage, facts):
        raise RequestRefused(_CASES[rule.error], sentence=rule.sentence)


def check_client(client: Client, claims: Mapping[str, Any] | None, *, issuer: str) -> None:
    """Raise `RequestRefused` if a client that has just authenticated violates a rule of its level.

    `claims` are the claims of the client assertion; None if the client has authenticated without an assertion. Checks the
    settings of the client again, because a row may have been changed without the checks of the service.
    """
    level = level_of(client.settings)
    check(level, Stage.CLIENT, client_shape(client, proofs=client.active_credentials, request_keys=client.active_request_keys))
    check(level, Stage.PROOF, ClientProof(claims is not None, (claims or {}).get("aud"), issuer))


def client_shape(client: Client, *, proofs: Iterable[ClientCredential], request_keys: Iterable[ClientCredential]) -> ClientShape:
    """Return the settings of a client, with the algorithms of the given keys, as a `ClientShape`, which the rules check."""
    return ClientShape(
        auth_method=str(client.auth_method),
        proof_algorithms=frozenset(key.algorithm for key in proofs),
        request_algorithms=frozenset(key.algorithm for key in request_keys),
        callbacks=tuple(client.redirect_uris.split()),
        grant_types=frozenset(client.grant_types),
        id_token_algorithm=client.id_token_algorithm,
        is_native=client.app_type == "native",
        settings=client.settings,
    )


def interaction_headers(headers: Mapping[str, str], level: str, *, makes_one: bool = False) -> dict[str, str]:
    """Return the header that links a response to its request in the logs of both sides, if the level requires it.

    The response repeats the id of the request only if it is a UUID (FAPI 1.0 Baseline, 6.2.1). Otherwise, with `makes_one`, the response
    gets a new id.
    """
    if not has(level, INTERACTION_IDS):
        return {}
    sent = headers.get(INTERACTION_HEADER, "")
    if _UUID.fullmatch(sent):
        return {INTERACTION_HEADER: sent}
    return {INTERACTION_HEADER: str(uuid4())} if makes_one else {}
