"""Compliance levels in the admin: their labels, and the rules that a client breaks."""

from __future__ import annotations

from dataclasses import dataclass

from authapi.compliance.levels import NONE, level_of, rules_of
from authapi.models import Client
from authapi.services.clients import broken_rules

LEVEL_CHOICES = (
    ("", "None: OAuth 2.0 without FAPI"),
    ("fapi1_adv_pkj_par", "FAPI 1 Advanced, authentication by private_key_jwt"),
    ("fapi1_adv_mtls_par", "FAPI 1 Advanced, authentication by certificate"),
    ("fapi2_sp_pkj_mtls", "FAPI 2 Security Profile, authentication by private_key_jwt"),
    ("fapi2_sp_mtls_mtls", "FAPI 2 Security Profile, authentication by certificate"),
)
# The form field for each member of the management interface. If a member is not listed, its field has the same name.
FIELDS = {
    "client_authentication_methods": "token_endpoint_auth_method",
    "jwt_configuration": "alg",
    "signed_request_object": "request_keys",
    "refresh_token": "rotation_type",
}


@dataclass(frozen=True)
class ShownRule:
    """A rule on the page of a client."""

    sentence: str
    is_broken: bool


def shown_rules(client: Client) -> list[ShownRule]:
    """Return the rules of a client's level, broken rules first; empty for a client without a level."""
    level = level_of(client.settings)
    if level == NONE:
        return []
    found = {sentence for sentences in broken_rules(client).values() for sentence in sentences}
    rows = [ShownRule(rule.sentence, rule.sentence in found) for rule in rules_of(level)]
    return sorted(rows, key=lambda row: not row.is_broken)
