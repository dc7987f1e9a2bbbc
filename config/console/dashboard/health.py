"""What is wrong, in words, and what to do about it, for whoever may do it. Nothing here means that all is well."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.admin.utils import quote
from django.db.models import QuerySet
from django.urls import reverse
from django.utils import timezone

from authapi.models import ClientCredential, SamlKey, SigningKey
from authapi.upstream.expiring import ending_certificates
from config.console.dashboard.figures import DUE_TOO_LONG_SECONDS
from config.console.dashboard.readings import StreamState, age_of, in_words
from config.console.dashboard.state import State, counted
from config.console.dashboard.viewer import Viewer, list_of
from events.models import Event, Mark, Outbox
from identity.models import Connection, Tenant
from provisioning.models import Sweeper

# Of one kind of trouble so many are named; the list has the others.
_NAMED = 3
_EXPIRES_SOON = timedelta(days=14)
# Another company has to act.
_PROVIDER_EXPIRES_SOON = timedelta(days=30)
_CERTIFICATE_EXPIRES_SOON = timedelta(days=120)
# The calendar rotates keys once a day.
_ROTATION_LATE = timedelta(days=2)
# Numbering takes milliseconds, and a change is recorded with its row.
_UNNUMBERED_SECONDS = 30
_UNRECORDED_SECONDS = 60


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong (`bad`) or will be (`warn`): what, what to do, and the page for it."""

    tone: str
    text: str
    advice: str
    url: str = ""
    link: str = ""


def findings(viewer: Viewer, state: State) -> list[Finding]:
    """Return what is wrong, the worst first."""
    found = [*_streams(state), *_deliveries(viewer, state), *_keys(viewer), *_providers(viewer)]
    if viewer.is_operator:
        found += [*(_standing(viewer.tenant_id) if viewer.tenant_id else ()), *_platform(state)]
    return sorted(found, key=lambda finding: finding.tone != "bad")


def _streams(state: State) -> Iterator[Finding]:
    held = [stream for stream in state.streams if stream.held_since]
    yield from (_held(stream) for stream in held[:_NAMED])
    if len(held) > _NAMED:
        yield Finding("bad", f"{len(held) - _NAMED} more event streams are held.", "Open each to see why.", list_of("events_eventstream"),
                      "Event streams")  # fmt: skip
    if settings.BREAKER_FAILURES:
        failing = [stream for stream in state.streams if not stream.held_since and stream.failures * 2 >= settings.BREAKER_FAILURES]
        yield from (_failing(stream) for stream in failing[:_NAMED])


def _held(stream: StreamState) -> Finding:
    since = f" for {in_words(age_of(stream.held_since))}" if stream.held_since else ""
    if stream.staged_since:
        advice = "More users would be deleted than its threshold allows: look at the deletions, then allow them or stop them."
        return Finding("bad", f"{stream.name} is held{since}: {stream.held_reason}", advice, _place(stream), "Decide about the deletions")
    advice = "Nothing is lost. Mend the destination or its credentials; one delivery is tried from time to time, or resume it yourself."
    return Finding("bad", f"{stream.name} is held{since}: {stream.held_reason}", advice, _place(stream), "Open the event stream")


def _failing(stream: StreamState) -> Finding:
    text = f"{stream.name} has failed {stream.failures} times in a row."
    advice = f"After {settings.BREAKER_FAILURES} failures with several users it is held. See what its destination answers."
    failed = list_of("provisioning_delivery", q=stream.stream_id)
    return Finding("warn", text, advice, failed, "Its deliveries")


def _place(stream: StreamState) -> str:
    return reverse("admin:events_eventstream_change", args=(quote(stream.stream_id),))


def _deliveries(viewer: Viewer, state: State) -> Iterator[Finding]:
    letters = state.counts.get("provisioning_deadletter", 0)
    if letters:
        text = f"{counted(letters)} dead {'letter is' if letters == 1 else 'letters are'} open: events that a destination did not take."
        advice = "Look at the kinds of failure, mend the cause, then redeliver each kind."
        yield Finding("bad", text, advice, reverse("admin:provisioning_deadletter_kinds"), "Kinds of failure")
    if state.due is not None and age_of(state.due.since).total_seconds() > DUE_TOO_LONG_SECONDS:
        text = f"A delivery of {state.due.stream_name} could have run {in_words(age_of(state.due.since))} ago."
        advice = "Workers are missing or busy: start them, or start more of them." if viewer.is_operator else (
            "The service has too few workers: tell whoever runs it.")  # fmt: skip
        yield Finding("bad", text, advice, list_of("provisioning_lane"), "What waits")


def _keys(viewer: Viewer) -> Iterator[Finding]:
    now = timezone.now()
    if settings.SIGNING_KEY_DAYS and viewer.may_list("authapi_signingkey"):
        due = now - timedelta(days=settings.SIGNING_KEY_DAYS) - _ROTATION_LATE
        keys: QuerySet[SigningKey] = SigningKey.objects.of(viewer.tenant_id) if viewer.tenant_id else SigningKey.all_tenants.all()
        late = keys.filter(state=SigningKey.State.CURRENT, current_since__lt=due).first()
        if late is not None:
            text = f"The signing key of {late.tenant_id} is older than the {settings.SIGNING_KEY_DAYS} days that a key may sign."
            advice = "The calendar should have rotated it: see whether beat and a worker run, or rotate it with manage.py."
            yield Finding("warn", text, advice, list_of("authapi_signingkey", state__exact="current"), "Signing keys")
    if viewer.may_list("authapi_clientcredential"):
        proofs: QuerySet[ClientCredential]
        proofs = ClientCredential.objects.of(viewer.tenant_id) if viewer.tenant_id else ClientCredential.all_tenants.all()
        soon = proofs.filter(expires_at__gt=now, expires_at__lt=now + _EXPIRES_SOON).select_related("client").order_by("expires_at")
        yield from (_expiring(proof) for proof in soon[:_NAMED])
    if viewer.may_list("authapi_samlkey"):
        yield from _saml_certificates(viewer, now)


def _saml_certificates(viewer: Viewer, now: datetime) -> Iterator[Finding]:
    """Warn months ahead: partners that copied the certificate by hand need the time."""
    keys: QuerySet[SamlKey] = SamlKey.objects.of(viewer.tenant_id) if viewer.tenant_id else SamlKey.all_tenants.all()
    ending = keys.filter(state=SamlKey.State.CURRENT, expires_at__lt=now + _CERTIFICATE_EXPIRES_SOON).order_by("expires_at")
    for key in ending[:_NAMED]:
        text = f"The SAML certificate of {key.tenant_id} expires on {key.expires_at:%d %B %Y}: applications may refuse logins from then on."
        place = reverse("admin:authapi_samlkey_change", args=(quote(key.pk),))
        yield Finding(
            "warn", text, "Publish the next one now, and let it sign when every application has it.", place, "Open the certificate"
        )


def _expiring(proof: ClientCredential) -> Finding:
    text = f"{proof} of {proof.client} expires on {proof.expires_at:%d %B %Y}: the application cannot authenticate with it any more."
    place = reverse("admin:authapi_clientcredential_change", args=(quote(proof.pk),))
    return Finding("warn", text, "Register its successor, and let the application use both until then.", place, "Open the credential")


def _providers(viewer: Viewer) -> Iterator[Finding]:
    """Warn of connections whose provider signs with certificates that end: a provider that renews them locks people out."""
    if not viewer.tenant_id or not viewer.may_list("identity_connection"):
        return
    now = timezone.now()
    connections = Connection.objects.of(viewer.tenant_id)
    for ending in ending_certificates(connections, now=now, within=_PROVIDER_EXPIRES_SOON)[:_NAMED]:
        is_over = ending.at <= now
        text = f"The certificate of the provider of {ending.connection} {'expired' if is_over else 'expires'} on {ending.at:%d %B %Y}."
        advice = "Ask the provider for its next certificate, and add it beside the present one before the provider signs with it."
        place = reverse("admin:identity_connection_provider", args=(quote(ending.connection.pk),))
        yield Finding("warn", text, advice, place, "Open the provider")


def _standing(tenant_id: str) -> Iterator[Finding]:
    """Tell an operator who looks at one tenant that nobody else can."""
    status = Tenant.objects.filter(pk=tenant_id).exclude(status=Tenant.Status.ACTIVE).values_list("status", flat=True).first()
    if status is not None:
        place = reverse("admin:identity_tenant_change", args=(quote(tenant_id),))
        yield Finding("bad", f"This tenant is {status}: every host of it answers 403.", "Activate it when it should answer again.", place,
                      "Open the tenant")  # fmt: skip


def _platform(state: State) -> Iterator[Finding]:
    yield from _processes()
    if state.open_streams is None and state.events is not None:
        yield Finding(
            "warn", "Redis does not answer.", "No event is lost, but streams and deliveries learn of them a second later. Start it."
        )
    if settings.INSECURE_HTTP:
        advice = "Right for one machine that tries the service out. For anything else give it a certificate and leave INSECURE_HTTP out."
        yield Finding("warn", "Served over plain http.", advice)
    if not settings.MAIL_REACHES_PEOPLE:
        text = "Mail goes nowhere." if not settings.MAIL_IS_CONFIGURED else "Mail goes to a file or a terminal, and not to people."
        advice = "New passwords and alerts reach nobody. Set EMAIL_URL to a mail server."
        yield Finding("warn", text, advice, list_of("authapi_accountticket"), "Mailed links")


def _processes() -> Iterator[Finding]:
    """Say which of the parts that run all the time do not, by what they leave undone."""
    now = timezone.now()
    if not Sweeper.objects.filter(lease_until__gt=now).exists():
        advice = "Start one: deliveries that were paused, lost messages and lost workers are taken up by it."
        yield Finding("bad", "No worker process is running.", advice, list_of("provisioning_sweeper"), "Sweeper")
    waiting = Outbox.objects.order_by("event").values_list("event", flat=True).first()
    recorded = None if waiting is None else Event.objects.filter(pk=waiting).values_list("time", flat=True).first()
    if recorded is not None and age_of(recorded).total_seconds() > _UNNUMBERED_SECONDS:
        text = f"An event waits for its position for {in_words(age_of(recorded))}: nobody hears of it before."
        yield Finding(
            "bad", text, "No process numbers events. See EVENTS_NUMBERER_ENABLED and the logs.", list_of("events_outbox"), "Outbox"
        )
    mark = Mark.objects.order_by("pk").values_list("marked_at", flat=True).first()
    if mark is not None and age_of(mark).total_seconds() > _UNRECORDED_SECONDS:
        text = "A change went around the service, and no event tells of it yet."
        yield Finding(
            "bad", text, "The sweep of a worker records it. See EVENTS_SWEEPER_ENABLED.", list_of("events_mark"), "Unrecorded changes"
        )
