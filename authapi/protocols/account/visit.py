"""One request to a page of the account: its user, its section and its response."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from authapi.accounts.self_service.own_act import OwnAct, shown_name
from authapi.accounts.self_service.proofs import is_proven
from authapi.edge.throttling import Rate
from authapi.login.browser import address_of, see_other, user_agent_of, with_parameters
from authapi.login.cookies import SESSION, form_token, read_cookie, set_cookie
from authapi.models import Client, Session
from authapi.pages.form_fields import Problem
from authapi.pages.hosted_page import hosted_page, with_rate
from authapi.protocols.account.entry import DONE, FAILED, kept_fields, place_of
from authapi.tenant_settings import AccountPage, sign_in_settings
from foundation.json_values import storable
from identity.hosts import HostMatch
from identity.models import User


class Proof(Enum):
    """When a section requires a new proof (a login that is at most a few minutes old): never, before changes, or also before it is
    shown."""

    NONE = auto()
    ACTS = auto()
    PAGE = auto()


# Maximum length of the value that `chosen` returns. The longest value is `<provider>|<id>`, the id of a linked account.
_LONGEST_CHOICE = 300


@dataclass(frozen=True)
class Section:
    """One page of the account. `name` is part of URLs and of stored rows, so it never changes.

    `view` answers GET and POST. The form token of a posted form was checked before this call. `kept` names the fields that are
    preserved while the user logs in again. `kept` must not name a field with a secret.
    """

    name: str
    title: Any
    about: Any
    view: Callable[[Visit], HttpResponse]
    proof: Proof = Proof.NONE
    is_offered: Callable[[Visit], bool] = lambda visit: True
    kept: tuple[str, ...] = ()
    is_dangerous: bool = False
    # The section from which this page is opened. A page with a parent is not in the list of sections.
    parent: str = ""

    @property
    def path(self) -> str:
        return place_of(self.name)

    @property
    def route(self) -> str:
        """The name of the URL pattern, for templates."""
        return f"hosted_account_{self.name.replace('/', '_').replace('-', '_')}"


@dataclass(frozen=True)
class Visit:
    """The argument of a section's view. `is_form`: a form of this session was posted. `problem`: why a form was refused."""

    request: HttpRequest
    host: HostMatch
    client: Client
    session: Session
    section: Section
    sections: Sequence[Section]
    is_form: bool = False
    problem: str = ""

    @property
    def user(self) -> User:
        return self.session.user

    @property
    def page(self) -> AccountPage:
        """The functions of the account page that the tenant has turned on, and the connections whose users may use the page."""
        return sign_in_settings(self.host.tenant_id).account_page

    @property
    def is_proven(self) -> bool:
        """Whether the user has logged in within the last minutes, with all required factors."""
        return is_proven(self.client, self.session)

    @property
    def own(self) -> OwnAct:
        """The `OwnAct` that changes the account of this user."""
        return OwnAct(self.host, self.client, self.session, ip=address_of(self.request), user_agent=user_agent_of(self.request))

    @cached_property
    def kept(self) -> dict[str, str]:
        """The input that the user typed in a form of this page before the form required a new login."""
        return kept_fields(self.session, self.request.GET.get("kept", ""))

    def chosen(self, name: str) -> str:
        """Return the value of a button or a hidden field, such as the id of a row; empty if absent."""
        return storable(self.request.POST.get(name, ""))[:_LONGEST_CHOICE]

    def typed(self, name: str, *, longest: int) -> str:
        """Return the stripped value of a field, cut to one character more than `longest`, so that the view can refuse a longer value."""
        return self.request.POST.get(name, "").strip()[: longest + 1]

    def offered(self) -> list[Section]:
        """Return the sections that are offered to this user, in their order."""
        return [section for section in self.sections if not section.parent and section.is_offered(self)]

    @property
    def home(self) -> Section:
        """The section in the list to which this page belongs: the parent of the page if it has one, otherwise the page itself."""
        return next((section for section in self.sections if section.name == self.section.parent), self.section)

    def done(self, code: str, *, section: str | None = None, **further: str) -> HttpResponse:
        """Redirect to a section that shows the result. Because of the redirect, a reload does not repeat the form."""
        return self.go_to(self.section.name if section is None else section, **{DONE: code}, **further)

    def failed(self, code: str, *, section: str) -> HttpResponse:
        """Redirect to a section that shows an error."""
        return self.go_to(section, **{FAILED: code})

    def go_to(self, section: str, **parameters: str) -> HttpResponse:
        """Redirect to a section."""
        answer = see_other(self.request, with_parameters(place_of(section), parameters))
        answer["Cache-Control"] = "no-store"
        return answer

    def keep_session(self, answer: HttpResponse, cookie: str) -> HttpResponse:
        """Set a new cookie for the session. An empty `cookie` sets none."""
        seconds = max(1, int((self.session.expires_at - timezone.now()).total_seconds())) if self.session.is_persistent else None
        if cookie:
            set_cookie(answer, SESSION, cookie, seconds=seconds)
        return answer

    def show(
        self,
        template: str,
        context: dict[str, Any] | None = None,
        *,
        problems: Sequence[Problem] = (),
        rate: Rate | None = None,
        status: int = 400,
    ) -> HttpResponse:
        """Render a page of the account.

        The HTTP status is 429 if `rate` is given. Without `rate`, it is `status` if the page shows a problem, and 200 if not.
        """
        found = [*problems, *([Problem(self.problem)] if self.problem else [])]
        failed = _FAILED.get(self.request.GET.get(FAILED, ""))
        shared = {
            "section": self.section,
            "home": self.home,
            "sections": self.offered(),
            "user": self.user,
            "account_name": shown_name(self.user),
            "form_token": form_token(read_cookie(self.request, SESSION)),
            "done": _DONE.get(self.request.GET.get(DONE, "")) if not found else None,
            "failed": failed if not found else None,
            "problems": found,
        }
        status = 429 if rate is not None else status if found else 200
        return with_rate(hosted_page(self.request, self.host, f"account/{template}", {**shared, **(context or {})}, status=status), rate)


# The results that a redirect can show. The code in the URL selects a text and is never shown itself.
_DONE = {
    "saved": _("Your changes are saved."),
    "added": _("The method is added."),
    "passkey-added": _("The passkey is added."),
    "password": _("Your password is changed. You were logged out everywhere else."),
    "mailed": _("We sent a link to the new address if it can be used. Open it to confirm the address. Until then, nothing changes."),
    "logged-out": _("That device is logged out."),
    "logged-out-elsewhere": _("You are logged out everywhere else."),
    "taken-back": _("The application has no access any more."),
    "linked": _("The accounts are linked."),
    "removed": _("The entry is removed."),
    "unlinked": _("The accounts are no longer linked."),
}
_FAILED = {
    "setup-over": _("The setup has ended. Begin again."),
    "not-linked": _("Nothing was linked."),
    "cannot-link": _("This account cannot be linked: it has linked accounts of its own, or it is being deleted."),
}
