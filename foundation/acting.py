"""Stores the present act with its actor: staff, a client of the management interface, a user at the account page, or a command. Pure.

Middleware and commands set the act, and the audit log reads it. Work without an actor (such as a login, or the work of a worker) has no
act, so the audit log has no entries about the rows that this work changes. If such work adds an entry itself (`identity.audit.entries`),
the actor of the entry is `SERVICE`.
"""

from __future__ import annotations

import getpass
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Literal, cast
from uuid import UUID, uuid4

ActorKind = Literal["staff", "client", "command", "service", "user"]


@dataclass(frozen=True, slots=True)
class Actor:
    """The person or program that acts. `name` is for display; `id` does not change when the name changes."""

    kind: ActorKind
    id: str
    name: str


# The actor of audit entries that the service adds without an act, such as those of scheduled work.
SERVICE = Actor("service", "", "The service itself")


@dataclass(frozen=True, slots=True)
class Act:
    """One request or command. All its changes have the same act id. `label` and `reason` are empty unless `said` sets them.

    `job` is the id of the job that continues the act after the request.
    """

    actor: Actor
    ip: str | None = None
    user_agent: str = ""
    label: str = ""
    reason: str = ""
    job: str = ""
    id: UUID = field(default_factory=uuid4)


_current: ContextVar[Act | None] = ContextVar("current_act", default=None)


def current_act() -> Act | None:
    """Return the act of this task or thread, or None if there is no actor."""
    return _current.get()


@contextmanager
def acting(act: Act | None) -> Iterator[None]:
    """Make `act` the present act for the block. Pass None for a block without an actor, such as the work of a job."""
    token = _current.set(act)
    try:
        yield
    finally:
        _current.reset(token)


@contextmanager
def said(label: str, reason: str = "") -> Iterator[None]:
    """Give the present act a label for the block, for example the name of the pressed button, and the reason that the actor has given."""
    act = _current.get()
    with acting(None if act is None else replace(act, label=label, reason=reason)):
        yield


def as_document(act: Act) -> dict[str, str]:
    """Return an act in the form that a job stores."""
    actor = {"kind": act.actor.kind, "actor_id": act.actor.id, "name": act.actor.name}
    return {**actor, "ip": act.ip or "", "user_agent": act.user_agent, "label": act.label, "reason": act.reason, "id": str(act.id)}


def of_document(document: Mapping[str, str], *, job: str) -> Act:
    """Return the act that `as_document` stored, with the id of the job that continues it."""
    actor = Actor(cast(ActorKind, document["kind"]), document["actor_id"], document["name"])
    said = {name: document[name] for name in ("user_agent", "label", "reason")}
    return Act(actor, ip=document["ip"] or None, **said, job=job, id=UUID(document["id"]))


def act_of_command(arguments: Sequence[str]) -> Act | None:
    """Return the act of a command line. Return None for `test`, and for `runserver`, because each request to it is a separate act.

    The act contains only the name of the command, because the arguments can be secrets.
    """
    name = arguments[1] if len(arguments) > 1 else ""
    if not name or name in ("runserver", "test"):
        return None
    try:
        account = getpass.getuser()
    except (KeyError, OSError):
        account = "unknown"
    return Act(Actor("command", account, f"{account}@{socket.gethostname()}"), label=f"manage.py {name}")
