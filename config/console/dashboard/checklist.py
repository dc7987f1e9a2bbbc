"""The first steps of a new tenant: whether each step is done, and the page on which to do it."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Exists, OuterRef, Q
from django.urls import reverse

from authapi.models import Client, ClientGrant
from config.console.dashboard.viewer import Viewer, list_of
from events.models import EventStream
from identity.models import Connection, CustomDomain, Tenant, User

DISMISS = "identity.change_tenant"


@dataclass(frozen=True)
class Step:
    """One step. `url` is empty if the account has no permission for the page."""

    text: str
    why: str
    is_done: bool
    url: str


@dataclass(frozen=True)
class Checklist:
    """The steps of a tenant whose setup is not complete."""

    steps: list[Step]
    may_dismiss: bool

    @property
    def done(self) -> int:
        return sum(step.is_done for step in self.steps)


def checklist(viewer: Viewer) -> Checklist | None:
    """Return the first steps of the tenant in scope; None once all are done or dismissed."""
    if viewer.tenant_id is None:
        return None
    done = _done(viewer.tenant_id)
    if done is None or all(done.values()):
        return None
    return Checklist([_step(viewer, name, is_done=is_done) for name, is_done in done.items()], may_dismiss=viewer.may(DISMISS))


def _done(tenant_id: str) -> dict[str, bool] | None:
    """Return whether each step is done, from one statement; None if the steps were dismissed."""
    own = Q(tenant_id=OuterRef("pk"))
    names = {
        "connection": Connection.all_tenants.filter(own),
        "user": User.all_tenants.filter(own),
        "application": Client.all_tenants.filter(own, revoked_at=None),
        "consumer": ClientGrant.all_tenants.filter(own, scopes__contains=["read:events"]),
        "everything": Client.all_tenants.filter(own, is_global=True, revoked_at=None),
        "provisioning": EventStream.all_tenants.filter(own),
        "domain": CustomDomain.all_tenants.filter(own, is_canonical=False, verified_at__isnull=False),
    }
    asked = {f"has_{name}": Exists(rows) for name, rows in names.items()}
    found = Tenant.objects.filter(pk=tenant_id, setup_dismissed_at=None).annotate(**asked).values(*asked).first()
    if found is None:
        return None
    # A global client has every scope, so it can read the stream: the step counts as done.
    found["has_consumer"] = found["has_consumer"] or found["has_everything"]
    return {name: found[f"has_{name}"] for name in _TEXTS}


_TEXTS = {
    "connection": (
        "Add a connection",
        "Every user belongs to a connection: a database of this service, or an external provider that logs users in.",
    ),
    "user": ("Add the first user", "The event user.created then appears in the event log, and in every stream, within a second."),
    "application": ("Register an application", "An application logs users in and requests tokens for APIs."),
    "consumer": (
        "Let an application read events",
        "Grant the scope read:events to an application. It can then read every event from GET /events.",
    ),
    "provisioning": ("Connect a SCIM server", "The server then gets an account for each user, and every change of a user."),
    "domain": ("Use a domain of your own", "Users then log in at your domain instead of the domain of this service."),
}
_ADDS = {
    "connection": "identity_connection",
    "user": "identity_user",
    "application": "authapi_client",
    "consumer": "authapi_clientgrant",
    "provisioning": "provisioning_action",
}
# Steps that do not lead to the form for a new row, but to another page.
_PAGES = {"provisioning": "provisioning_connect"}


def _step(viewer: Viewer, name: str, *, is_done: bool) -> Step:
    text, why = _TEXTS[name]
    if name == "domain":
        return Step(text, why, is_done, list_of("identity_customdomain") if viewer.may_list("identity_customdomain") else "")
    app, _, model = _ADDS[name].partition("_")
    page = _PAGES.get(name, f"{_ADDS[name]}_add")
    return Step(text, why, is_done, reverse(f"admin:{page}") if viewer.may(f"{app}.add_{model}") else "")
