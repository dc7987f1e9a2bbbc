"""Decides whether a login is recent enough for a sensitive change. If the user can pass a second factor, the login must include one."""

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

# A login is recent for this number of seconds.
PROOF_SECONDS = 300


def is_proven(client: Client, session: Session) -> bool:
    """Tell whether the user of a session has logged in recently. If the user can pass a second factor, the login must include one."""
    is_new = timezone.now() - session.authenticated_at < timedelta(seconds=PROOF_SECONDS)
    return is_new and (has_second_factor(session.methods) or not wished_contexts(client, session.user))


def wished_contexts(client: Client, user: User) -> tuple[str, ...]:
    """Return the contexts to request if a recent login is required.

    These are contexts of a second factor if the user can pass one, otherwise no context. The policies of tenant and client say when a login
    requires a second factor. With every policy except "never", a sensitive change requires a second factor even if the login did not: an
    attacker with a stolen password must not remove factors. A factor of the same method as the user's login is not a second factor, because
    it proves nothing more.
    """
    kinds = factor_settings(user.tenant_id).kinds
    if not kinds or policy_of(client, None) is SecondFactorPolicy.NEVER:
        return ()
    usable = [one.kind for one in factors_of(user) if one.kind in kinds and KINDS[one.kind].repeats != user.connection.strategy]
    return tuple(name for name in offered_contexts(user.tenant_id) if SECOND_FACTOR in CONTEXTS[name])[:1] if usable else ()
