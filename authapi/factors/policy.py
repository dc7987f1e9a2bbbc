"""Whether a login must prove a second factor. Pure: settings, demands and proofs come in, one decision goes out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from authapi.factors.kinds import is_second_to
from authapi.models.factors import SecondFactorPolicy
from authapi.tokens import contexts

Policy = SecondFactorPolicy
_STRICTNESS = {policy: place for place, policy in enumerate(Policy)}


class Due(Enum):
    """What a login has to do about second factors."""

    NOTHING = auto()
    PROVE = auto()
    ENROLL = auto()
    # It must prove a factor and cannot: none that the tenant offers would prove anything new.
    IMPOSSIBLE = auto()


@dataclass(frozen=True)
class Demand:
    """What is asked of a login: the policies in force, and whether the client asks for a second factor itself."""

    policy: Policy
    is_asked: bool = False


@dataclass(frozen=True)
class Standing:
    """What is known of a person: the methods of the session, their factors by kind, the kinds on offer, and the browser."""

    methods: frozenset[str]
    enrolled: tuple[str, ...]
    offered: tuple[str, ...]
    is_browser_remembered: bool = False


def policy_in_force(tenant: Policy, client: Policy | None, organization: Policy | None) -> Policy:
    """Return the policy of a login: the client's own before the tenant's, and an organization may only demand more."""
    chosen = client if client is not None else tenant
    return chosen if organization is None else max(chosen, organization, key=_STRICTNESS.__getitem__)


def asks_for_factor(wished: Sequence[str], *, offered: Sequence[str], methods: Collection[str], is_required: bool) -> bool:
    """Tell whether a client asks for a second factor by the contexts that it wishes, best first (OpenID Connect Core 1.0, 5.5.1.1).

    A wish that the session meets better already asks for nothing. Where the client requires one of them, any that is met will do.
    """
    counting = [name for name in wished if name in offered]
    met = [name for name in counting if contexts.CONTEXTS[name] & frozenset(methods)]
    if met and (is_required or counting[0] == met[0]):
        return False
    return any(contexts.SECOND_FACTOR in contexts.CONTEXTS[name] for name in (counting if is_required else counting[:1]))


def due(demand: Demand, standing: Standing) -> Due:
    """Return what the login has to do. A browser that is remembered spares what the policy demands, never what the client asks for."""
    if demand.policy is Policy.NEVER or contexts.SECOND_FACTOR in standing.methods:
        return Due.NOTHING
    if not (demand.is_asked or _is_demanded(demand.policy, standing)):
        return Due.NOTHING
    if any(kind in standing.offered and is_second_to(kind, standing.methods) for kind in standing.enrolled):
        return Due.PROVE
    if any(is_second_to(kind, standing.methods) for kind in standing.offered):
        return Due.ENROLL
    # A tenant that offers no factor has a policy that cannot be meant; one whose factors all repeat the first proof must not let through.
    return Due.IMPOSSIBLE if standing.offered or demand.is_asked else Due.NOTHING


def _is_demanded(policy: Policy, standing: Standing) -> bool:
    if standing.is_browser_remembered:
        return False
    has_own = any(kind in standing.offered for kind in standing.enrolled)
    return policy in {Policy.ALWAYS, Policy.NEW_DEVICE} or has_own
