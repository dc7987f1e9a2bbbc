"""The ways in which a user can prove a second factor in a login, and the keys that are usable on this domain."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter

from django.http import HttpRequest
from django.utils.translation import gettext as _

from authapi.factors.challenges import Prover, bound_to_login
from authapi.factors.kinds import EMAIL, PHONE, RECOVERY_CODE, TOTP, WEBAUTHN_PLATFORM, WEBAUTHN_ROAMING, is_second_to
from authapi.factors.limits import Whereabouts
from authapi.factors.messages import can_send_to
from authapi.factors.relying_party import party_of
from authapi.factors.settings import factor_settings
from authapi.login.browser import address_of, user_agent_of
from authapi.login.known_browser import is_known_to, known_browser
from authapi.login.login import Login
from authapi.models import Session
from authapi.pages.passwordless import left_to_right
from authapi.tokens.contexts import names_of
from identity.factors.user_factors import factors_of
from identity.hosts import HostMatch
from identity.messages.numbers import masked_address, masked_number
from identity.models import EnrolledFactor, User

KEYS = (WEBAUTHN_PLATFORM, WEBAUTHN_ROAMING)


@dataclass(frozen=True)
class Way:
    """One way to prove a factor.

    A user may have several phones and email addresses, so for these factors `name` is the device. For other factors, `name` is the kind.
    """

    name: str
    kind: str
    factor: EnrolledFactor | None = None
    last_used_at: datetime | None = None

    @property
    def address(self) -> str:
        """The masked address of the factor. The owner of the address can recognize it."""
        return shown_address(self.factor) if self.factor is not None else ""

    @property
    def label(self) -> str:
        """The label of the way in a list."""
        if self.factor is not None:
            text = _("Email to %(address)s") if self.kind == EMAIL else _("Text message to %(address)s")
            return text % {"address": self.address}
        return label_of(self.kind)


def label_of(kind: str) -> str:
    """Return the label of a kind of factor."""
    return {
        TOTP: _("Authenticator app"),
        PHONE: _("Code by text message"),
        EMAIL: _("Code by email"),
        WEBAUTHN_ROAMING: _("Security key"),
        WEBAUTHN_PLATFORM: _("Screen lock of this device"),
        RECOVERY_CODE: _("Recovery code"),
    }[kind]


def shown_address(factor: EnrolledFactor) -> str:
    """Return the masked address of a factor. The address is masked because the user has not proven this factor yet."""
    return masked_address(factor.address) if factor.kind == EMAIL else left_to_right(masked_number(factor.address))


def ways_of(login: Login, session: Session) -> list[Way]:
    """Return the usable ways, the strongest first and the recovery code last."""
    settings, user = factor_settings(login.host.tenant_id), session.user
    ways = ways_with_factors(login.host, user, methods=names_of(session.methods))
    codes = EnrolledFactor.objects.of(login.host.tenant_id).filter(user=user, kind=RECOVERY_CODE)
    if settings.has_recovery_codes and codes.exists():
        ways.append(Way(RECOVERY_CODE, RECOVERY_CODE))
    return ways


def ways_with_factors(host: HostMatch, user: User, *, methods: Collection[str] = ()) -> list[Way]:
    """Return the ways in which a user can prove a factor now, the strongest first.

    A factor is usable if the tenant offers the kind of the factor, and the proven `methods` do not include this kind. A key is usable
    only on the domain for which the key was created. A code needs a provider that sends messages.
    """
    own = [factor for factor in factors_of(user) if is_second_to(factor.kind, methods)]
    ways: list[Way] = []
    for kind in factor_settings(host.tenant_id).kinds:
        ways += _ways_of_kind(host, kind, [factor for factor in own if factor.kind == kind])
    return ways


def first_of(ways: Sequence[Way]) -> Way | None:
    """Return the default way: the way that was used last, otherwise the strongest way."""
    used = [(way.last_used_at, way) for way in ways if way.last_used_at is not None]
    return max(used, key=itemgetter(0))[1] if used else next(iter(ways), None)


def prover_of(login: Login, session: Session) -> Prover:
    """Return the user who proves a factor in this login. A proof is valid for this login only."""
    return Prover(
        session.user,
        whereabouts_of(login.http_request, session.user),
        bound_to_login(login.row.pk),
        client=login.client,
        connection=session.connection.name,
        language=login.language,
    )


def whereabouts_of(http_request: HttpRequest, user: User) -> Whereabouts:
    """Return where the proofs of a user come from: the IP address, the known browser and the user agent. The rate limits count by IP
    address and by browser."""
    known = known_browser(user.tenant_id, http_request.headers.get("Cookie", ""))
    browser = known if is_known_to(user, known) else None
    return Whereabouts(address_of(http_request), browser=browser, user_agent=user_agent_of(http_request))


def _ways_of_kind(host: HostMatch, kind: str, own: Sequence[EnrolledFactor]) -> list[Way]:
    if kind in (PHONE, EMAIL):
        return [Way(factor.device, kind, factor, factor.last_used_at) for factor in own] if can_send_to(host.tenant_id, kind) else []
    usable = [factor for factor in own if kind not in KEYS or factor.relying_party == party_of(host).id]
    return [Way(kind, kind, last_used_at=max((one.last_used_at for one in usable if one.last_used_at), default=None))] if usable else []
