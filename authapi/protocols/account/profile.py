"""The section in which users change their names, picture and language."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import HttpResponse
from django.utils.translation import gettext as _

from authapi.accounts.self_service.profile import FIELDS, LANGUAGE, change_profile, editable_fields
from authapi.pages.form_fields import Field, Problem, form_fields
from authapi.protocols.account.visit import Visit
from identity.languages import LANGUAGES, enabled_languages
from identity.services.failures import Invalid

_LONGEST = {"name": 300, "nickname": 300, "given_name": 150, "family_name": 150, "picture": 2048}
_AUTOCOMPLETE = {"name": "name", "given_name": "given-name", "family_name": "family-name", "nickname": "nickname", "picture": "photo"}


def view(visit: Visit) -> HttpResponse:
    """Show the profile, or save it."""
    user = visit.user
    if not visit.is_form:
        stored = {name: getattr(user, name) or "" for name in FIELDS}
        chosen = user.user_metadata.get(LANGUAGE)
        return _page(visit, stored, chosen if isinstance(chosen, str) else "")
    typed = {name: visit.typed(name, longest=_LONGEST[name]) for name in editable_fields(user)}
    language = visit.request.POST.get("language", "")
    problems = [Problem(_("Enter fewer characters."), name) for name, value in typed.items() if len(value) > _LONGEST[name]]
    if language and language not in enabled_languages(visit.host.tenant_id):
        problems.append(Problem(_("Choose a language from the list."), "language"))
    if not problems:
        try:
            change_profile(visit.own, typed, language=language)
        except Invalid as refused:
            problems = [Problem(_words(name), name if name in FIELDS else "") for name in refused.errors]
        else:
            return visit.done("saved")
    stored = {name: getattr(user, name) or "" for name in FIELDS}
    return _page(visit, {**stored, **typed}, language, problems)


def _words(name: str) -> str:
    if name == "picture":
        return _("Enter the address of a picture that starts with https://.")
    return _("This value cannot be stored. Check it for unusual characters.")


def _page(visit: Visit, values: dict[str, str], language: str, problems: Sequence[Problem] = ()) -> HttpResponse:
    labels = {
        "name": _("Name"),
        "given_name": _("First name"),
        "family_name": _("Last name"),
        "nickname": _("Nickname"),
        "picture": _("Address of a picture"),
    }
    editable = editable_fields(visit.user)
    shown = [
        Field(
            name,
            labels[name],
            type="url" if name == "picture" else "text",
            value=values[name],
            autocomplete=_AUTOCOMPLETE[name],
            maxlength=_LONGEST[name],
            is_required=False,
            is_fixed=name not in editable,
        )
        for name in FIELDS
    ]
    choices = [
        ("", _("The language of the browser")),
        *((code, LANGUAGES[code].own_name) for code in enabled_languages(visit.host.tenant_id)),
    ]
    shown.append(Field("language", _("Language"), value=language, is_required=False, choices=tuple(choices)))
    return visit.show("profile", {"fields": form_fields(shown, problems), "is_elsewhere": not editable}, problems=problems)
