"""A tenant with a stream to a SCIM server (`Side`). The methods change a user of the tenant, and deliver the events as a worker does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from events.log.numbering import number_tenant
from events.models import EventStream
from identity.models import Connection, Tenant, User
from identity.services.users import create_user, delete_user, update_user
from provisioning.dead_letters.redelivery import Order, redeliver_letters
from provisioning.engine import delivering, dispatch, lanes
from provisioning.engine.streams import create_stream
from provisioning.models import Attempt, DeadLetter, Delivery
from provisioning.services.actions import deploy_action, update_action
from tests.factories.models.provisioning import ActionFactory
from tests.factories.scim import TOKEN

# Canaille 0.3.6 refuses the members `type` and `primary` of an email address, and requires a given name and a family name.
_FOR_CANAILLE = [
    {"path": "externalId", "source": "user_id"},
    {"path": "active", "source": "!blocked"},
    {"path": "userName", "source": "email"},
    {"path": "name.givenName", "source": "given_name"},
    {"path": "name.familyName", "source": "family_name"},
    {"path": "name.formatted", "source": "name"},
    {"path": "displayName", "source": "name"},
]


@dataclass(frozen=True)
class Outcome:
    """The result of the delivery of one event. `why` is the recorded reason of a success or skip, or the text of a failure."""

    state: str
    why: str
    status: int | None = None

    @property
    def is_dead(self) -> bool:
        return self.state == "dead"


class Side:
    """A tenant that provisions its users to the server at `base_url`."""

    def __init__(self, tenant: Tenant, connection: Connection, base_url: str, server: str, **options: Any) -> None:
        self.tenant_id = tenant.pk
        self._connection = connection
        secrets = {"SCIM_BASE_URL": base_url, "SCIM_BEARER_TOKEN": TOKEN, "SCIM_MAX_RETRIES": "0", "SCIM_TIMEOUT_MS": "5000"}
        self._action = ActionFactory.create(
            tenant_id=tenant.pk,
            name="to scim",
            template="scim-user-provisioning",
            secrets=secrets,
            options=options,
            mapping=_FOR_CANAILLE if server == "canaille" else None,
            deploy=True,
        )
        bound = {"action_id": str(self._action.pk)}
        types = ["user.created", "user.updated", "user.deleted"]
        self.stream: EventStream = create_stream(tenant_id=tenant.pk, subscriptions=types, destination_type="action", destination=bound)
        self.user_id = ""

    def set_options(self, **options: Any) -> None:
        """Replace the options of the action, and deploy the action."""
        update_action(tenant_id=self.tenant_id, action_id=self._action.pk, changes={"options": options})
        deploy_action(tenant_id=self.tenant_id, action_id=self._action.pk)

    def create(self, email: str, *, identifier: str = "", verified: bool = False) -> Outcome:
        """Create a user and deliver the event. The other methods change or delete this user."""
        names = {"given_name": "Anna", "family_name": "Berg", "name": "Anna Berg"}
        user: User = create_user(
            tenant_id=self.tenant_id, connection=self._connection, identifier=identifier, email=email, email_verified=verified, **names
        )
        self.user_id = user.user_id
        return self.deliver()

    def change(self, **changes: Any) -> Outcome:
        update_user(tenant_id=self.tenant_id, user_id=self.user_id, changes=changes)
        return self.deliver()

    def delete(self) -> Outcome:
        delete_user(tenant_id=self.tenant_id, user_id=self.user_id)
        return self.deliver()

    def later_steps(self) -> list[Callable[[], Outcome]]:
        """Return functions that change, block and delete the user. Each function delivers the event and returns its outcome."""
        return [lambda: self.change(given_name="Eve"), lambda: self.change(blocked=True), self.delete]

    def redeliver_all(self, *, force: bool) -> None:
        """Put every dead letter back into its lane, and deliver the events."""
        letters = list(DeadLetter.objects.filter(stream_id=self.stream.pk).values_list("pk", flat=True))
        redeliver_letters(tenant_id=self.tenant_id, letter_ids=letters, order=Order("ada@example.test", reason="again", force=force))
        self.deliver()

    def deliver(self) -> Outcome:
        """Number and dispatch the new events, and deliver all due deliveries. Return the outcome of the newest event."""
        number_tenant(self.tenant_id)
        dispatch.dispatch_tenant(self.tenant_id)
        claim = lanes.claim_oldest(self.stream.pk)
        while claim is not None:
            claim = delivering.deliver_claim(claim, delivering.Turn(seconds=60)).next or lanes.claim_oldest(self.stream.pk)
        return self.outcomes()[-1]

    def outcomes(self) -> list[Outcome]:
        """Return the outcome of every event, in the order of the events."""
        rows = Delivery.objects.filter(stream_id=self.stream.pk).order_by("position")
        return [Outcome(row.state, row.error_message if row.state == "dead" else row.reason, row.error_status) for row in rows]

    def last_failure_line(self) -> str:
        """Return the text of the log line about the failure of the newest attempt."""
        lines = Attempt.objects.filter(tenant_id=self.tenant_id).order_by("-pk").values_list("log_lines", flat=True)[0]
        return next(f"{line['fields']['text']} {line['fields']['detail']}" for line in lines if line["message"] == "sync failed")
