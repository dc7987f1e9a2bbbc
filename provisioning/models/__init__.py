"""Database models of provisioning."""

from provisioning.models.account_links import AccountLink, AccountLock, NamedDeletions
from provisioning.models.actions import Action, ActionSecret, ActionVersion, Pace, Trial
from provisioning.models.alerts import Alert
from provisioning.models.dead_letters import DeadLetter, IgnoredKind
from provisioning.models.deliveries import Attempt, Delivery, FailureClass
from provisioning.models.lanes import Breaker, Lane, StreamTally, Sweeper
from provisioning.models.synchronizations import DeletionGuard, SynchronizationRow
from provisioning.models.webhooks import WebhookSecrets

__all__ = [
    "AccountLink",
    "AccountLock",
    "Action",
    "ActionSecret",
    "ActionVersion",
    "Alert",
    "Attempt",
    "Breaker",
    "DeadLetter",
    "DeletionGuard",
    "Delivery",
    "FailureClass",
    "IgnoredKind",
    "Lane",
    "NamedDeletions",
    "Pace",
    "StreamTally",
    "Sweeper",
    "SynchronizationRow",
    "Trial",
    "WebhookSecrets",
]
