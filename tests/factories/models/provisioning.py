"""Factories of actions, deliveries and the other rows of streams. They use a service if one exists. Otherwise they save rows."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from django.utils import timezone
from factory.base import Factory
from factory.declarations import LazyFunction, SelfAttribute, SubFactory

from provisioning.models import (
    AccountLink,
    AccountLock,
    Action,
    ActionSecret,
    ActionVersion,
    Alert,
    Attempt,
    Breaker,
    DeadLetter,
    DeletionGuard,
    Delivery,
    FailureClass,
    IgnoredKind,
    Lane,
    NamedDeletions,
    Pace,
    StreamTally,
    SynchronizationRow,
    Trial,
    WebhookSecrets,
)
from provisioning.services.actions import create_action
from tests.factories.models.identity import JobFactory
from tests.factories.models.row_factory import RowFactory, from_now, own_number, own_text, same, tenant_of


class ActionFactory(Factory[Action]):
    """An action of the SCIM template, as a draft without secrets."""

    class Meta:
        model = Action

    name = own_text()
    template = "scim-user-provisioning"

    @classmethod
    def _create(cls, model_class: type[Action], *args: Any, **fields: Any) -> Action:
        return create_action(**fields)


class ActionSecretFactory(RowFactory[ActionSecret]):
    class Meta:
        model = ActionSecret

    action = SubFactory(ActionFactory)
    name = "KEY"
    sealed = "sealed"


class ActionVersionFactory(RowFactory[ActionVersion]):
    """The first version of an action. The version is not deployed."""

    class Meta:
        model = ActionVersion

    action = SubFactory(ActionFactory)
    number = 1
    template = SelfAttribute("action.template")


class TrialFactory(RowFactory[Trial]):
    """A running connection test."""

    class Meta:
        model = Trial

    action = SubFactory(ActionFactory)
    kind = Trial.Kind.CONNECTION
    actor = "an administrator"


class PaceFactory(RowFactory[Pace]):
    class Meta:
        model = Pace

    action = SubFactory(ActionFactory)
    full_at = from_now()
    promised_until = from_now()


class DeliveryFactory(RowFactory[Delivery]):
    """A waiting delivery without a lane."""

    class Meta:
        model = Delivery

    stream_id = own_text(26)
    key = own_text()
    position = own_number()
    event = own_number()
    event_id = own_text(26)
    event_type = "user.created"


class AttemptFactory(RowFactory[Attempt]):
    class Meta:
        model = Attempt

    tenant_id = tenant_of("delivery")
    delivery = SubFactory(DeliveryFactory, tenant_id=same())
    number = 1
    started_at = LazyFunction(timezone.now)
    outcome = Attempt.Outcome.DELIVERED


class DeadLetterFactory(RowFactory[DeadLetter]):
    """An open dead letter whose event was pruned from the log."""

    class Meta:
        model = DeadLetter

    tenant_id = tenant_of("delivery")
    delivery = SubFactory(DeliveryFactory, tenant_id=same(), state=Delivery.State.DEAD)
    stream_id = SelfAttribute("delivery.stream_id")
    key = SelfAttribute("delivery.key")
    event_id = SelfAttribute("delivery.event_id")
    event_type = SelfAttribute("delivery.event_type")
    reason = own_text()
    error_class = FailureClass.TRANSIENT
    fingerprint = own_text(32)
    attempts = 1


class IgnoredKindFactory(RowFactory[IgnoredKind]):
    class Meta:
        model = IgnoredKind

    stream_id = own_text(26)
    fingerprint = own_text(32)
    until = from_now(days=1)
    actor = own_text()
    reason = own_text()


class LaneFactory(RowFactory[Lane]):
    class Meta:
        model = Lane

    stream_id = own_text(26)
    key = own_text()


class BreakerFactory(RowFactory[Breaker]):
    class Meta:
        model = Breaker

    stream_id = own_text(26)


class StreamTallyFactory(RowFactory[StreamTally]):
    class Meta:
        model = StreamTally

    stream_id = own_text(26)
    name = "delivered"


class AlertFactory(RowFactory[Alert]):
    class Meta:
        model = Alert

    stream_id = own_text(26)
    kind = Alert.Kind.NEW_FAILURE
    period = LazyFunction(timezone.now)


class AccountLinkFactory(RowFactory[AccountLink]):
    class Meta:
        model = AccountLink

    action_id = LazyFunction(uuid4)
    server = own_text(32)
    user_id = own_text()
    birth = own_number()
    position = SelfAttribute("birth")


class AccountLockFactory(RowFactory[AccountLock]):
    class Meta:
        model = AccountLock

    server = own_text(32)
    user_id = own_text()
    token = LazyFunction(uuid4)
    until = from_now()


class NamedDeletionsFactory(RowFactory[NamedDeletions]):
    class Meta:
        model = NamedDeletions

    stream_id = own_text(26)


class SynchronizationRowFactory(RowFactory[SynchronizationRow]):
    class Meta:
        model = SynchronizationRow

    job = SubFactory(JobFactory)
    outcome = SynchronizationRow.Outcome.CREATED
    user_id = "database|unknown"


class DeletionGuardFactory(RowFactory[DeletionGuard]):
    class Meta:
        model = DeletionGuard

    stream_id = own_text(26)
    threshold = 100


class WebhookSecretsFactory(RowFactory[WebhookSecrets]):
    class Meta:
        model = WebhookSecrets

    stream_id = own_text(26)
    sealed = "sealed"
