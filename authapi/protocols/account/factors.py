"""The sections in which users rename and remove second factors and passkeys."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.http import HttpResponse
from django.utils.translation import gettext as _

from authapi.accounts.self_service.adding import kinds_to_add, may_add_passkey
from authapi.accounts.self_service.factors import PASSKEYS, SECOND_FACTORS, has_recovery_code, remove, rename, renew_recovery_code
from authapi.factors.settings import factor_settings
from authapi.pages.form_fields import Problem
from authapi.protocols.account.visit import Visit
from identity.factors.user_factors import LONGEST_NAME, factors_of
from identity.languages import written_time
from identity.models import EnrolledFactor, User
from identity.services.failures import Conflict, Invalid, NotFound

Kind = EnrolledFactor.Kind


def offers_second_factors(visit: Visit) -> bool:
    """Tell whether the tenant has enabled second factors, or the user still has a second factor."""
    return bool(factor_settings(visit.host.tenant_id).kinds or factors_of(visit.user, SECOND_FACTORS))


def offers_passkeys(visit: Visit) -> bool:
    """Tell whether the user may log in with a passkey, or still has a passkey."""
    return may_add_passkey(visit.user) or bool(factors_of(visit.user, PASSKEYS))


def second_factors_view(visit: Visit) -> HttpResponse:
    """Show the second factors, rename or remove a factor, or show a new recovery code once."""
    if visit.is_form and visit.chosen("act") == "recovery-code":
        try:
            code = renew_recovery_code(visit.own)
        except Conflict:
            return _page(
                visit,
                "factors",
                SECOND_FACTORS,
                problems=[Problem(_("Add a second step first. A recovery code only replaces a lost second step."))],
            )
        return visit.show("recovery_code", {"code": code})
    return _changed(visit, SECOND_FACTORS) or _page(visit, "factors", SECOND_FACTORS)


def passkeys_view(visit: Visit) -> HttpResponse:
    """Show the passkeys, or rename or remove a passkey."""
    return _changed(visit, PASSKEYS) or _page(visit, "passkeys", PASSKEYS)


def _changed(visit: Visit, kinds: Collection[str]) -> HttpResponse | None:
    """Process the posted form and return the response; None if no form was posted. The two sections differ only in `kinds`."""
    if not visit.is_form:
        return None
    template = "passkeys" if kinds == PASSKEYS else "factors"
    device = visit.chosen("device")
    try:
        if visit.chosen("act") == "remove":
            remove(visit.own, device=device, kinds=kinds)
            return visit.done("removed")
        name = visit.typed("name", longest=LONGEST_NAME)
        rename(visit.own, device=device, kinds=kinds, name=name)
    except NotFound:
        return _page(visit, template, kinds, problems=[Problem(_("This entry no longer exists."))])
    except Invalid:
        return _page(visit, template, kinds, problems=[Problem(_("Enter a shorter name, without unusual characters."))])
    return visit.done("saved")


def _page(visit: Visit, template: str, kinds: Collection[str], *, problems: list[Problem] | None = None) -> HttpResponse:
    user = visit.user
    context: dict[str, Any] = {
        "factors": [_shown(factor) for factor in factors_of(user, kinds)],
        "longest_name": LONGEST_NAME,
        "has_recovery_code": has_recovery_code(user),
        "may_add": may_add_passkey(user) if kinds == PASSKEYS else bool(kinds_to_add(visit.client, user)),
        "takes_recovery_codes": _takes_recovery_codes(visit, user),
    }
    return visit.show(template, context, problems=problems or [])


def _takes_recovery_codes(visit: Visit, user: User) -> bool:
    return factor_settings(visit.host.tenant_id).has_recovery_codes and bool(factors_of(user, SECOND_FACTORS))


def _shown(factor: EnrolledFactor) -> dict[str, Any]:
    kind = _kinds().get(factor.kind, "")
    return {
        "id": factor.device,
        "name": factor.name,
        "kind": kind,
        "called": factor.name or kind,
        "address": factor.address,
        "added": written_time(factor.created_at),
        "last_used": written_time(factor.last_used_at) if factor.last_used_at is not None else "",
    }


def _kinds() -> dict[str, str]:
    return {
        Kind.TOTP: _("Authenticator app"),
        Kind.PHONE: _("Text message"),
        Kind.EMAIL: _("Code by email"),
        Kind.WEBAUTHN_ROAMING: _("Security key"),
        Kind.WEBAUTHN_PLATFORM: _("Lock of a device"),
        Kind.PASSKEY: _("Passkey"),
    }
