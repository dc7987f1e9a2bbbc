"""Second factors in logins without a page: the token endpoint requests the factor and returns no tokens yet (contract 2.3)."""

from __future__ import annotations

from authapi.factors.demands import LoginFacts, factors_due, usable_kinds
from authapi.factors.kinds import KINDS, RECOVERY_CODE, is_second_to
from authapi.factors.policy import Due
from authapi.factors.settings import factor_settings
from authapi.factors.transactions import FirstProof, begin_transaction
from authapi.failures import RequestRefused
from authapi.failures.factors import FactorCase
from authapi.failures.logins import LoginCase
from authapi.services import sign_in_log
from authapi.tokens.audiences import is_factors_audience
from authapi.tokens.keys import trust
from identity.factors.user_factors import factors_of

_DEMANDED = "mfar"


def demand_second_factor(proof: FirstProof, *, user_agent: str = "") -> None:
    """If the login requires a second factor, store the login and raise `RequestRefused` with its `mfa_token`.

    `mfa_requirements` lists the types of factors that the user may prove or enroll.
    """
    facts = LoginFacts(proof.client, proof.organization, proof.user, frozenset(proof.methods))
    is_asked = is_factors_audience(proof.audience or "", trust.get(proof.client.tenant_id).hosts)
    due = factors_due(facts, is_asked=is_asked)
    if due is Due.NOTHING:
        return
    if due is Due.IMPOSSIBLE:
        raise RequestRefused(LoginCase.FACTORS_NOT_MET)
    may_enroll = due is Due.ENROLL
    token = begin_transaction(proof, may_enroll=may_enroll)
    sign_in_log.note(
        tenant_id=proof.client.tenant_id,
        type=_DEMANDED,
        is_success=False,
        description="A second factor is required.",
        user=proof.user,
        client=proof.client,
        connection=proof.connection.name,
        ip=proof.ip,
        user_agent=user_agent,
    )
    members = {"mfa_token": token, "mfa_requirements": _requirements(proof, may_enroll=may_enroll)}
    raise RequestRefused(FactorCase.MFA_REQUIRED, members=members)


def _requirements(proof: FirstProof, *, may_enroll: bool) -> dict[str, list[dict[str, str]]]:
    methods, tenant_id = frozenset(proof.methods), proof.client.tenant_id
    if may_enroll:
        return {"enroll": [{"type": KINDS[kind].factor} for kind in usable_kinds(tenant_id) if is_second_to(kind, methods)]}
    settings = factor_settings(tenant_id)
    owned = {factor.kind for factor in factors_of(proof.user)}
    types = [KINDS[kind].factor for kind in settings.kinds if kind in owned and is_second_to(kind, methods)]
    return {"challenge": [{"type": name} for name in (*types, *((RECOVERY_CODE,) if settings.has_recovery_codes else ()))]}
