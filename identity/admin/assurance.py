"""How well a session of staff is proven: when, with what, and what asks for a proof that is fresh.

A session remembers its last proof. What shows or changes secrets, and what sends many events again, wants one of the last
minutes (`STAFF_PROOF_MINUTES`): with a factor where the account has one, else with its password.
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
    """What a session was proven with."""

    PASSWORD = "password"  # noqa: S105  (its name)
    CODE = "code"
    PASSKEY = "passkey"
    RECOVERY_CODE = "recovery_code"


def note_proof(request: HttpRequest, by: Proof) -> None:
    """Remember that the person was proven just now. The session gets another key: one that was known before is worth nothing."""
    request.session.cycle_key()
    request.session[_PROOF] = {"at": int(time.time()), "by": by.value}


def is_proven(request: HttpRequest) -> bool:
    """Tell whether the session was proven of late, and as well as the account can be."""
    staff, proof = staff_of(request), request.session.get(_PROOF)
    if staff is None or not proof:
        return False
    if not 0 <= time.time() - proof["at"] < settings.STAFF_PROOF_MINUTES * 60:
        return False
    return proof["by"] != Proof.PASSWORD or not has_factors(staff)


def asked_for_proof(request: HttpRequest) -> HttpResponse | None:
    """Return None for a session that is proven; else the way to the page that asks, which leads back here.

    A form that was sent is not kept and never sent again by itself: the person is told, and presses the button once more.
    """
    if is_proven(request):
        return None
    query = {"next": request.get_full_path()}
    if request.method not in ("GET", "HEAD"):
        query[_HELD] = "1"
    return HttpResponseRedirect(f"{reverse('admin:prove')}?{urlencode(query)}")


def needs_proof(view: Callable[..., Any]) -> Callable[..., Any]:
    """Let a view, a method of a page, or an action of a list run in a proven session only."""

    @functools.wraps(view)
    def proven(*args: Any, **kwargs: Any) -> Any:
        request = next(argument for argument in args if isinstance(argument, HttpRequest))
        return asked_for_proof(request) or view(*args, **kwargs)

    proven.needs_proof = True  # type: ignore[attr-defined]
    return proven


def was_held(request: HttpRequest) -> bool:
    """Tell whether a form was held back before this page asked."""
    return request.GET.get(_HELD) == "1"


def say_what_was_held(request: HttpRequest) -> None:
    """Tell the person, on the page that they come back to, that nothing was done."""
    messages.warning(request, "Nothing was done yet: what you sent was not kept. Check the form and send it once more.")


def is_required_of(staff: Staff) -> bool:
    """Tell whether an account with this role and place must have a second factor."""
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
    """Tell whether the account has to add a factor before it may do anything else. Asked once per request."""
    if not hasattr(request, "_must_enrol"):
        staff = staff_of(request)
        request._must_enrol = staff is not None and is_required_of(staff) and not has_factors(staff)  # type: ignore[attr-defined]
    return bool(request._must_enrol)  # type: ignore[attr-defined]


def forget_requirement(request: HttpRequest) -> None:
    """Let `must_enrol` ask again, after factors changed."""
    if hasattr(request, "_must_enrol"):
        del request._must_enrol
