"""Decides from settings, requests and proofs whether a login requires a second factor. Pure."""

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
    """The second-factor step that a login must take next."""

    NOTHING = auto()
    PROVE = auto()
    ENROLL = auto()
    # A factor is required, but the tenant offers no factor that proves more than the first proof.
    IMPOSSIBLE = auto()


@dataclass(frozen=True)
class Demand:
    """The requirement for a login: the policy that applies, and whether the client itself requests a second factor."""

    policy: Policy
    is_asked: bool = False


@dataclass(frozen=True)
class Standing:
    """The state of a login: methods of the session, enrolled kinds, offered kinds, and whether the browser is remembered."""

    methods: frozenset[str]
    enrolled: tuple[str, ...]
    offered: tuple[str, ...]
    is_browser_remembered: bool = False


def policy_in_force(tenant: Policy, client: Policy | None, organization: Policy | None) -> Policy:
    """Return the policy of a login. A client overrides the tenant. An organization can only make the policy stricter."""
    chosen = client if client is not None else tenant
    return chosen if organization is None else max(chosen, organization, key=_STRICTNESS.__getitem__)


def asks_for_factor(wished: Sequence[str], *, offered: Sequence[str], methods: Collection[str], is_required: bool) -> bool:
    """Tell whether the requested contexts of a client require a second factor (OpenID Connect Core 1.0, 5.5.1.1).

    `wished` are the requested contexts, best first; a context that is not `offered` is ignored. No factor is needed if the session already
    meets the best context. With `is_required`, no factor is needed if the session meets at least one context.
    """
    counting = [name for name in wished if name in offered]
    met = [name for name in counting if contexts.CONTEXTS[name] & frozenset(methods)]
    if met and (is_required or counting[0] == met[0]):
        return False
    return any(contexts.SECOND_FACTOR in contexts.CONTEXTS[name] for name in (counting if is_required else counting[:1]))


def due(demand: Demand, standing: Standing) -> Due:
    """Return the next step of the login.

    With the policy `NEVER`, no factor is required, even if the client requests one. With another policy, a login in a
    remembered browser requires a factor only if the client itself requests one.
    """
    if demand.policy is Policy.NEVER or contexts.SECOND_FACTOR in standing.methods:
        return Due.NOTHING
    if not (demand.is_asked or _is_demanded(demand.policy, standing)):
        return Due.NOTHING
    if any(kind in standing.offered and is_second_to(kind, standing.methods) for kind in standing.enrolled):
        return Due.PROVE
    if any(is_second_to(kind, standing.methods) for kind in standing.offered):
        return Due.ENROLL
    # Without any offered factor, the policy has no effect. The login must be refused if all offered factors repeat the first proof, or if
    # the client requests a factor and none is offered.
    return Due.IMPOSSIBLE if standing.offered or demand.is_asked else Due.NOTHING


def _is_demanded(policy: Policy, standing: Standing) -> bool:
    if standing.is_browser_remembered:
        return False
    has_own = any(kind in standing.offered for kind in standing.enrolled)
    return policy in {Policy.ALWAYS, Policy.NEW_DEVICE} or has_own
