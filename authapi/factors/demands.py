"""Collects the second-factor policies that apply to a login. The decision itself is pure (`policy`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from authapi.factors.kinds import EMAIL, PHONE
from authapi.factors.messages import can_send_to
from authapi.factors.policy import Demand, Due, Standing, asks_for_factor, due, policy_in_force
from authapi.factors.settings import factor_settings, offered_contexts, policy_of_organization
from authapi.models import Client, SecondFactorPolicy
from identity.factors.user_factors import factors_of
from identity.models import Organization, User

# The name of the client setting that contains the policy of this client.
CLIENT_SETTING = "second_factor_policy"


@dataclass(frozen=True)
class LoginFacts:
    """A login after its first proof: client, organization, user, and the methods used so far."""

    client: Client
    organization: Organization | None
    user: User
    methods: frozenset[str]


def factors_due(
    facts: LoginFacts,
    *,
    wished: Sequence[str] = (),
    is_required: bool = False,
    is_asked: bool = False,
    is_browser_remembered: Callable[[], bool] = lambda: False,
) -> Due:
    """Return the second-factor step that the login must take.

    `wished` are the authentication contexts (`acr`) that the client requests, best first. `is_asked` tells whether the client requests a
    second factor in another way.

    Reads the user's factors only if the tenant has enabled second factors or the client requests one. Other logins need no further query.
    """
    settings = factor_settings(facts.user.tenant_id)
    contexts = offered_contexts(facts.user.tenant_id)
    asked = is_asked or (bool(wished) and asks_for_factor(wished, offered=contexts, methods=facts.methods, is_required=is_required))
    if not settings.kinds and not asked:
        return Due.NOTHING
    demand = Demand(policy_of(facts.client, facts.organization), is_asked=asked)
    if demand.policy is SecondFactorPolicy.NEVER:
        return Due.NOTHING
    enrolled = tuple(factor.kind for factor in factors_of(facts.user))
    # Skip the lookup of the browser if it cannot change the result.
    is_remembered = settings.remembers_browsers and not asked and is_browser_remembered()
    # Include enabled kinds without a sender: a factor is required even if its codes cannot be sent.
    return due(demand, Standing(facts.methods, enrolled, settings.kinds, is_remembered))


def policy_of(client: Client, organization: Organization | None) -> SecondFactorPolicy:
    """Return the policy that applies to a client and an organization."""
    own = client.settings.get(CLIENT_SETTING)
    return policy_in_force(
        factor_settings(client.tenant_id).policy,
        SecondFactorPolicy(own) if own in SecondFactorPolicy.values else None,
        policy_of_organization(organization) if organization is not None else None,
    )


def usable_kinds(tenant_id: str) -> tuple[str, ...]:
    """Return the kinds of second factors that a user can enroll now. Such a kind is enabled and, if it sends codes, has a sender."""
    kinds = factor_settings(tenant_id).kinds
    return tuple(kind for kind in kinds if kind not in (PHONE, EMAIL) or can_send_to(tenant_id, kind))
