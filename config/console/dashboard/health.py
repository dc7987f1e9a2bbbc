"""The problems that the start page lists, each with advice for the staff who can solve it. An empty list means no problems."""

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
from identity.stopped_tenants import STOPPED_STATUSES
from provisioning.models import Sweeper

# Maximum number of problems of one kind that are listed one by one. The page links to a list with the other problems.
_NAMED = 3
_EXPIRES_SOON = timedelta(days=14)
# This warning comes earlier than the warning for credentials of clients, because the provider, another company, has to act.
_PROVIDER_EXPIRES_SOON = timedelta(days=30)
_CERTIFICATE_EXPIRES_SOON = timedelta(days=120)
# A signing key is reported when its age exceeds the limit by more than this number of days. The scheduler rotates keys once a day, so a
# delay of one day is normal.
_ROTATION_LATE = timedelta(days=2)
# Normally an event is numbered within milliseconds, and a change is recorded in the transaction that makes it. If an event or a mark waits
# longer than these times, the page shows a problem.
_UNNUMBERED_SECONDS = 30
_UNRECORDED_SECONDS = 60


@dataclass(frozen=True)
class Finding:
    """A problem that exists (`bad`) or will exist (`warn`): its description, advice, and the page on which staff can solve the problem."""

    tone: str
    text: str
    advice: str
    url: str = ""
    link: str = ""


def findings(viewer: Viewer, state: State) -> list[Finding]:
    """Return the problems, the worst first."""
    found = [*_streams(state), *_deliveries(viewer, state), *_keys(viewer), *_providers(viewer)]
    if viewer.is_operator:
        found += [*(_standing(viewer.tenant_id) if viewer.tenant_id else ()), *_platform(state)]
    return sorted(found, key=lambda finding: finding.tone != "bad")


def _streams(state: State) -> Iterator[Finding]:
    held = [stream for stream in state.streams if stream.held_since]
    yield from (_held(stream) for stream in held[:_NAMED])
    if len(held) > _NAMED:
        advice = "Open each stream to see why it is held."
        yield Finding("bad", f"{len(held) - _NAMED} more event streams are held.", advice, list_of("events_eventstream"), "Event streams")
    if settings.BREAKER_FAILURES:
        failing = [stream for stream in state.streams if not stream.held_since and stream.failures * 2 >= settings.BREAKER_FAILURES]
        yield from (_failing(stream) for stream in failing[:_NAMED])


def _held(stream: StreamState) -> Finding:
    since = f" for {in_words(age_of(stream.held_since))}" if stream.held_since else ""
    if stream.staged_since:
        advice = (
            "The stream would delete more users than its deletion threshold allows. Review the deletions, then allow them or disable "
            "the stream."
        )
        return Finding("bad", f"{stream.name} is held{since}: {stream.held_reason}", advice, _place(stream), "Review the deletions")
    advice = (
        "No event is lost. Fix the destination, or the address and token that the stream uses. At intervals, the service tries one "
        "delivery. If this delivery succeeds, the service resumes the stream. You can also resume the stream yourself."
    )
    return Finding("bad", f"{stream.name} is held{since}: {stream.held_reason}", advice, _place(stream), "Open the event stream")


def _failing(stream: StreamState) -> Finding:
    text = f"The last {stream.failures} attempts of {stream.name} have failed."
    advice = (
        f"After {settings.BREAKER_FAILURES} failures in a row with events of several users, the service holds the stream. "
        "Check the responses of its destination."
    )
    failed = list_of("provisioning_delivery", q=stream.stream_id)
    return Finding("warn", text, advice, failed, "Show the deliveries of the stream")


def _place(stream: StreamState) -> str:
    return reverse("admin:events_eventstream_change", args=(quote(stream.stream_id),))


def _deliveries(viewer: Viewer, state: State) -> Iterator[Finding]:
    letters = state.counts.get("provisioning_deadletter", 0)
    if letters:
        text = f"{counted(letters)} dead {'letter is' if letters == 1 else 'letters are'} open: events that a destination did not accept."
        advice = "See the kinds of failure, fix the cause of each kind, then redeliver its dead letters."
        yield Finding("bad", text, advice, reverse("admin:provisioning_deadletter_kinds"), "Show the kinds of failure")
    if state.due is not None and age_of(state.due.since).total_seconds() > DUE_TOO_LONG_SECONDS:
        text = f"A delivery of {state.due.stream_name} has been due for {in_words(age_of(state.due.since))}."
        advice = "There are too few workers, or they are busy. Start more workers." if viewer.is_operator else (
            "The service has too few workers. Tell an operator of the platform.")  # fmt: skip
        yield Finding("bad", text, advice, list_of("provisioning_lane"), "Show waiting deliveries")


def _keys(viewer: Viewer) -> Iterator[Finding]:
    now = timezone.now()
    if settings.SIGNING_KEY_DAYS and viewer.may_list("authapi_signingkey"):
        due = now - timedelta(days=settings.SIGNING_KEY_DAYS) - _ROTATION_LATE
        keys: QuerySet[SigningKey] = SigningKey.objects.of(viewer.tenant_id) if viewer.tenant_id else SigningKey.all_tenants.all()
        late = keys.filter(state=SigningKey.State.CURRENT, current_since__lt=due).first()
        if late is not None:
            text = f"The signing key of {late.tenant_id} is older than the limit of {settings.SIGNING_KEY_DAYS} days."
            advice = "The scheduler did not rotate the key. Check that beat and a worker run, or run manage.py rotate_signing_keys."
            yield Finding("warn", text, advice, list_of("authapi_signingkey", state__exact="current"), "Signing keys")
    if viewer.may_list("authapi_clientcredential"):
        proofs: QuerySet[ClientCredential]
        proofs = ClientCredential.objects.of(viewer.tenant_id) if viewer.tenant_id else ClientCredential.all_tenants.all()
        soon = proofs.filter(expires_at__gt=now, expires_at__lt=now + _EXPIRES_SOON).select_related("client").order_by("expires_at")
        yield from (_expiring(proof) for proof in soon[:_NAMED])
    if viewer.may_list("authapi_samlkey"):
        yield from _saml_certificates(viewer, now)


def _saml_certificates(viewer: Viewer, now: datetime) -> Iterator[Finding]:
    """Warn months ahead: partners that copied the certificate by hand need this time to replace it."""
    keys: QuerySet[SamlKey] = SamlKey.objects.of(viewer.tenant_id) if viewer.tenant_id else SamlKey.all_tenants.all()
    ending = keys.filter(state=SamlKey.State.CURRENT, expires_at__lt=now + _CERTIFICATE_EXPIRES_SOON).order_by("expires_at")
    for key in ending[:_NAMED]:
        text = f"The SAML certificate of {key.tenant_id} expires on {key.expires_at:%d %B %Y}: applications may then refuse logins."
        place = reverse("admin:authapi_samlkey_change", args=(quote(key.pk),))
        yield Finding(
            "warn",
            text,
            "Publish the next certificate now, and make it current when every application has it.",
            place,
            "Open the certificate",
        )


def _expiring(proof: ClientCredential) -> Finding:
    text = (
        f"The credential {proof} of {proof.client} expires on {proof.expires_at:%d %B %Y}. The application cannot authenticate with "
        "it after that date."
    )
    place = reverse("admin:authapi_clientcredential_change", args=(quote(proof.pk),))
    advice = "Add a new credential to the client, and configure the application to use the new credential before that date."
    return Finding("warn", text, advice, place, "Open the credential")


def _providers(viewer: Viewer) -> Iterator[Finding]:
    """Warn before certificates of providers expire.

    After a provider renews its certificate, users cannot log in until an administrator adds the new certificate to the connection.
    """
    if not viewer.tenant_id or not viewer.may_list("identity_connection"):
        return
    now = timezone.now()
    connections = Connection.objects.of(viewer.tenant_id)
    for ending in ending_certificates(connections, now=now, within=_PROVIDER_EXPIRES_SOON)[:_NAMED]:
        is_over = ending.at <= now
        text = f"The certificate of the provider of {ending.connection} {'expired' if is_over else 'expires'} on {ending.at:%d %B %Y}."
        advice = "Ask the provider for its next certificate, and add it to the connection before the provider signs with it."
        place = reverse("admin:identity_connection_provider", args=(quote(ending.connection.pk),))
        yield Finding("warn", text, advice, place, "Open the connection test")


def _standing(tenant_id: str) -> Iterator[Finding]:
    """Report a tenant that is not active. Only operators can open its pages."""
    status = Tenant.objects.filter(pk=tenant_id).exclude(status=Tenant.Status.ACTIVE).values_list("status", flat=True).first()
    if status is not None:
        code = 503 if status in STOPPED_STATUSES else 403
        moved, closed = "A move has stopped this tenant: see manage.py tenants status.", "Activate the tenant to make its hosts available."
        advice = moved if code == 503 else closed
        place = reverse("admin:identity_tenant_change", args=(quote(tenant_id),))
        yield Finding("bad", f"This tenant is {status}: all its hosts answer {code}.", advice, place, "Open the tenant")


def _platform(state: State) -> Iterator[Finding]:
    yield from _processes()
    if state.open_streams is None and state.events is not None:
        yield Finding(
            "warn",
            "Redis does not answer.",
            "No event is lost, but streams and deliveries get each event about a second later. Start Redis.",
        )
    if settings.INSECURE_HTTP:
        advice = "Use plain HTTP only to try the service on one machine. Otherwise set up a certificate and remove INSECURE_HTTP."
        yield Finding("warn", "The service uses plain HTTP.", advice)
    if not settings.MAIL_REACHES_PEOPLE:
        text = "No email is sent." if not settings.MAIL_IS_CONFIGURED else "Email goes to a file or a terminal, not to users."
        advice = "Emails such as password resets and alerts do not arrive. Set EMAIL_URL to a mail server."
        yield Finding("warn", text, advice, list_of("authapi_accountticket"), "Links sent to users")


def _processes() -> Iterator[Finding]:
    """If no sweeper has a lease, report that no worker runs.

    If an event or a mark waits too long, report that the numberer or the sweeper does not work.
    """
    now = timezone.now()
    if not Sweeper.objects.filter(lease_until__gt=now).exists():
        advice = "No events are delivered to destinations. Start a worker process."
        yield Finding("bad", "No worker process is running.", advice, list_of("provisioning_sweeper"), "Sweeper")
    waiting = Outbox.objects.order_by("event").values_list("event", flat=True).first()
    recorded = None if waiting is None else Event.objects.filter(pk=waiting).values_list("time", flat=True).first()
    if recorded is not None and age_of(recorded).total_seconds() > _UNNUMBERED_SECONDS:
        text = f"An event has waited {in_words(age_of(recorded))} for its position in the log. Events without a position are not delivered."
        yield Finding(
            "bad",
            text,
            "No process gives events their positions. Check EVENTS_NUMBERER_ENABLED and the logs of the service.",
            list_of("events_outbox"),
            "Events without a position",
        )
    mark = Mark.objects.order_by("pk").values_list("marked_at", flat=True).first()
    if mark is not None and age_of(mark).total_seconds() > _UNRECORDED_SECONDS:
        text = "A program changed the database without the service, and the change has no event yet."
        yield Finding(
            "bad",
            text,
            "The sweeper of a worker should have recorded the change. Check EVENTS_SWEEPER_ENABLED.",
            list_of("events_mark"),
            "Unrecorded changes",
        )
