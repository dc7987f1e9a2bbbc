"""Proofs of identity in staff sessions: when and by which method the account proved its identity, and which requests need a recent proof.

A session stores its last proof. Requests that show or change secrets, or that send many events again, need a recent proof. A proof
is recent for `STAFF_PROOF_MINUTES` minutes. An account with a second factor must prove this factor, any other account its password.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from enum import StrEnum
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import urlencode

from identity.admin.scope import staff_of
from identity.factors.staff_factors import has_factors
from identity.models import Staff
from identity.staff_roles import ADMINISTRATOR

_PROOF = "proof"
_HELD = "held"


class Proof(StrEnum):
    """The method with which an account proved its identity in a session."""

    PASSWORD = "password"  # noqa: S105  (a name, not a password)
    CODE = "code"
    PASSKEY = "passkey"
    RECOVERY_CODE = "recovery_code"


def note_proof(request: HttpRequest, by: Proof) -> None:
    """Store that the account has just proven its identity. The session gets a new key, so that its former key becomes invalid."""
    request.session.cycle_key()
    request.session[_PROOF] = {"at": int(time.time()), "by": by.value}


def is_proven(request: HttpRequest) -> bool:
    """Tell whether the session has a recent proof: with a second factor if the account has one, otherwise with its password."""
    staff, proof = staff_of(request), request.session.get(_PROOF)
    if staff is None or not proof:
        return False
    if not 0 <= time.time() - proof["at"] < settings.STAFF_PROOF_MINUTES * 60:
        return False
    return proof["by"] != Proof.PASSWORD or not has_factors(staff)


def asked_for_proof(request: HttpRequest) -> HttpResponse | None:
    """Return None if the session has a recent proof. Otherwise redirect to the proof page, which then redirects back to the requested page.

    A submitted form is not stored or repeated: a message tells the user to submit it again.
    """
    if is_proven(request):
        return None
    query = {"next": request.get_full_path()}
    if request.method not in ("GET", "HEAD"):
        query[_HELD] = "1"
    return HttpResponseRedirect(f"{reverse('admin:prove')}?{urlencode(query)}")


def needs_proof(view: Callable[..., Any]) -> Callable[..., Any]:
    """Let a view, a method of a page, or an action of a list run only in a session with a recent proof."""

    @functools.wraps(view)
    def proven(*args: Any, **kwargs: Any) -> Any:
        request = next(argument for argument in args if isinstance(argument, HttpRequest))
        return asked_for_proof(request) or view(*args, **kwargs)

    proven.needs_proof = True  # type: ignore[attr-defined]
    return proven


def was_held(request: HttpRequest) -> bool:
    """Tell whether a submitted form was discarded because the session needed a proof."""
    return request.GET.get(_HELD) == "1"


def say_what_was_held(request: HttpRequest) -> None:
    """Make the next page show a message which says that the submitted form was discarded."""
    messages.warning(request, "Nothing was changed yet. Your input was not saved. Check the form and send it again.")


def is_required_of(staff: Staff) -> bool:
    """Tell whether `STAFF_SECOND_FACTOR` requires a second factor for the role of this account."""
    match settings.STAFF_SECOND_FACTOR:
        case "all":
            return True
        case "administrators":
            return staff.is_platform_operator or staff.role == ADMINISTRATOR
        case "operators":
            return staff.is_platform_operator
        case _:
            return False


def must_enrol(request: HttpRequest) -> bool:
    """Tell whether the account must add a factor before it can open other pages. Reads the database once per request."""
    if not hasattr(request, "_must_enrol"):
        staff = staff_of(request)
        request._must_enrol = staff is not None and is_required_of(staff) and not has_factors(staff)  # type: ignore[attr-defined]
    return bool(request._must_enrol)  # type: ignore[attr-defined]


def forget_requirement(request: HttpRequest) -> None:
    """Make `must_enrol` read the database again after factors changed."""
    if hasattr(request, "_must_enrol"):
        del request._must_enrol
