"""What proves a person before something of weight changes: a login of the last minutes, with their second factor if they have one."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from authapi.factors.demands import policy_of
from authapi.factors.kinds import KINDS
from authapi.factors.settings import factor_settings, offered_contexts
from authapi.models import Client, SecondFactorPolicy, Session
from authapi.tokens.contexts import CONTEXTS, SECOND_FACTOR, has_second_factor
from identity.factors.user_factors import factors_of
from identity.models import User

# Seconds that a login is such a proof.
PROOF_SECONDS = 300


def is_proven(client: Client, session: Session) -> bool:
    """Tell whether the user of a session has proven within the last minutes who they are, by all that they have."""
    is_new = timezone.now() - session.authenticated_at < timedelta(seconds=PROOF_SECONDS)
    return is_new and (has_second_factor(session.methods) or not wished_contexts(client, session.user))


def wished_contexts(client: Client, user: User) -> tuple[str, ...]:
    """Return the contexts that such a login asks for: those of a second factor where the user can pass one, else none.

    It asks also where the policy of the tenant does not: an attacker with a stolen password must not remove the factors. A factor
    that goes where the login of the user goes proves nothing more. A tenant that never wants factors gets its way.
    """
    kinds = factor_settings(user.tenant_id).kinds
    if not kinds or policy_of(client, None) is SecondFactorPolicy.NEVER:
        return ()
    usable = [one.kind for one in factors_of(user) if one.kind in kinds and KINDS[one.kind].repeats != user.connection.strategy]
    return tuple(name for name in offered_contexts(user.tenant_id) if SECOND_FACTOR in CONTEXTS[name])[:1] if usable else ()
