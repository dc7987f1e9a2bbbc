"""The table of compliance levels and their rules (contract, 3.3). Pure.

Rules are checked in the order of the rows. The error names the first violated rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from authapi.compliance.rules import (
    ASSERTION_FOR_ISSUER,
    BOUND,
    BOUND_TO_CERTIFICATE,
    CODE,
    CODE_ID_TOKEN,
    CONFORMANT,
    EXACT_CALLBACKS,
    HTTPS_CALLBACKS,
    HYBRID_GRANTS,
    INTERACTION_IDS,
    ISSUER_IN_ANSWER,
    KEY_PROOF_ALGORITHMS,
    MUTUAL_TLS,
    NO_CIBA_GRANT,
    NO_DEVICE_GRANT,
    NO_IMPLICIT_GRANT,
    NO_OLD_ENDPOINTS,
    NO_PROFILE_IN_BROWSER,
    NO_ROTATION,
    NO_TYPED_GRANTS,
    NUMERIC_TIMES,
    PKCE_S256,
    PRIVATE_KEY_JWT,
    PS256_ACCESS_TOKENS,
    PS256_ID_TOKENS,
    PS256_KEYS,
    PS256_REQUESTS,
    PUSHED,
    RECENT_REQUESTS,
    REDIRECT_URI,
    REQUEST_KEYS,
    SHORT_CODES,
    SHORT_PUSHES,
    SHORT_REQUESTS,
    SIGNED,
    STANDARD_ERRORS,
    STATE_HASH,
    TOKEN_IN_HEADER,
    Rule,
    Stage,
)

NONE = "none"
Rules = tuple[Rule, ...]

_EVERY: Rules = (
    PS256_ID_TOKENS,
    CONFORMANT,
    EXACT_CALLBACKS,
    HTTPS_CALLBACKS,
    NO_TYPED_GRANTS,
    NO_DEVICE_GRANT,
    NO_CIBA_GRANT,
    SHORT_PUSHES,
    PUSHED,
    PKCE_S256,
    REDIRECT_URI,
    PS256_REQUESTS,
    PS256_ACCESS_TOKENS,
    TOKEN_IN_HEADER,
    SHORT_CODES,
    NUMERIC_TIMES,
    STANDARD_ERRORS,
    INTERACTION_IDS,
    NO_OLD_ENDPOINTS,
)
# FAPI 1.0 Part 2: Advanced.
_FAPI_1: Rules = (
    *_EVERY,
    HYBRID_GRANTS,
    REQUEST_KEYS,
    SIGNED,
    CODE_ID_TOKEN,
    RECENT_REQUESTS,
    SHORT_REQUESTS,
    BOUND_TO_CERTIFICATE,
    STATE_HASH,
    NO_PROFILE_IN_BROWSER,
)
# FAPI 2.0 Security Profile. The two rules about the times of signed requests come from FAPI 2.0 Message Signing, 5.3.1.
_FAPI_2: Rules = (
    *_EVERY,
    NO_IMPLICIT_GRANT,
    NO_ROTATION,
    KEY_PROOF_ALGORITHMS,
    CODE,
    RECENT_REQUESTS,
    SHORT_REQUESTS,
    ISSUER_IN_ANSWER,
)

LEVELS: dict[str, Rules] = {
    # Clients without a level also get the hash of the state (`s_hash`). This harms no client: a client that does not check this claim
    # ignores it.
    NONE: (STATE_HASH,),
    "fapi1_adv_pkj_par": (PRIVATE_KEY_JWT, PS256_KEYS, *_FAPI_1),
    "fapi1_adv_mtls_par": (MUTUAL_TLS, *_FAPI_1),
    "fapi2_sp_pkj_mtls": (PRIVATE_KEY_JWT, PS256_KEYS, ASSERTION_FOR_ISSUER, *_FAPI_2, BOUND),
    "fapi2_sp_mtls_mtls": (MUTUAL_TLS, *_FAPI_2, BOUND_TO_CERTIFICATE),
}


def level_of(settings: Mapping[str, Any]) -> str:
    """Return the compliance level in the settings of a client."""
    return settings.get("compliance_level") or NONE


def rules_of(level: str) -> Rules:
    """Return the rules of a level. For a level that this release does not know, return all rules: too strict is safe."""
    found = LEVELS.get(level)
    return tuple(dict.fromkeys(rule for rules in LEVELS.values() for rule in rules)) if found is None else found


def has(level: str, rule: Rule) -> bool:
    """Tell whether a level has a rule."""
    return rule in rules_of(level)


def broken(level: str, stage: Stage, facts: Any) -> Iterator[Rule]:
    """Yield the violated rules of a level."""
    for rule in rules_of(level):
        if rule.stage is stage and rule.is_kept is not None and not rule.is_kept(facts):
            yield rule


def answers_as_standard(settings: Mapping[str, Any]) -> bool:
    """Tell whether errors for a client with these settings have the statuses and codes of the standards."""
    return settings.get("oauth_standard_errors") is True or has(level_of(settings), STANDARD_ERRORS)
