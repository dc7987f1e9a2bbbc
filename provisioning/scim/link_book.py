"""Account links of one user in one run: which account belongs to the user, and the changes that the run makes to the links. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from provisioning.scim.instants import same_instant
from provisioning.scim.links import LONGEST_ID, UNSTABLE, Link, creation_of

# Number of user names kept per link. The waiting deliveries of one lane rarely contain more names of a user.
_MOST_NAMES = 4


class LinkRows(Protocol):
    """Storage of links; see `provisioning.links.rows`."""

    def read(self, remote_ids: Sequence[str]) -> list[Link]:
        """Return the links on this server, of every tenant, if they contain the id of the user or one of `remote_ids`."""

    def begin(self, link: Link) -> list[Link]:
        """Commit `link`, which contains a doubt. If an account of the user is known, commit nothing. Return the same links as `read`."""

    def write(self, link: Link) -> bool:
        """Store a link immediately; return False if a newer event has written the link."""

    def shows_creation(self, other_than: str) -> bool:
        """Tell whether the server has ever returned a creation time that differs from `other_than`."""


class LinkBook:
    """The account links that concern one user in one run, and the changes that the run makes to them.

    Changes that must be stored before a request are written immediately; all other changes are collected in `changes` for the outcome.
    """

    def __init__(self, rows: LinkRows | None, owner: Link, *, position: int) -> None:
        self._rows = rows
        self._owner = owner
        self._position = position
        self._read: Link | None = None
        self._others: list[Link] = []
        self.own: Link | None = None
        self._is_key_shared = False
        # Links that this run has ended, and that belong to other actions.
        self._ended_kin: list[Link] = []
        # Ids of accounts that the server reported as missing.
        self._gone: set[str] = set()
        # Whether the server has reported in this run that the linked account does not exist.
        self.is_just_gone = False

    @property
    def changes(self) -> tuple[Link, ...]:
        """Return the links that differ from their stored rows."""
        changed = [*self._ended_kin] if self.own is None or self.own == self._read else [self.own, *self._ended_kin]
        return tuple(replace(link, position=max(link.position, self._position)) for link in changed)

    @property
    def open_link(self) -> Link | None:
        """Return the link of this user if it may authorize a write."""
        return self.own if self.own is not None and self.own.is_open else None

    @property
    def is_in_doubt(self) -> bool:
        """Whether a create request for this user was sent, and its answer is unknown."""
        return self.own is not None and self.own.doubt is not None

    @property
    def is_linked_before(self) -> bool:
        """Whether an earlier event has linked the account. If it has, a create event for this user must update the account."""
        return self._read is not None and self._read.is_open and 0 < self._read.birth < self._position

    @property
    def is_stale(self) -> bool:
        """Whether the event is older than the account, or not newer than its deletion. Such an event must not write."""
        link = self.inherited or self.own
        if link is None:
            return False
        return link.birth > self._position or (link.ended is not None and link.ended >= self._position)

    def look(self, remote_ids: Iterable[str] = ()) -> None:
        """Read the links of the user and of these accounts."""
        if self._rows is not None:
            self._take(self._rows.read([remote_id for remote_id in remote_ids if _is_usable(remote_id)]))

    def begin_create(self, *, user_name: str, key: str) -> bool:
        """Commit a doubt before a create request is sent. Return whether the link already had a doubt."""
        if self._rows is None:
            return False
        names = (user_name,) if user_name else ()
        at = self._position
        fresh = replace(self._owner, birth=at, position=at, doubt=at, user_names=names, keys=(key,))
        self._take(self._rows.begin(fresh))
        was_in_doubt = self.is_in_doubt
        if not self.is_stale and (self.own is None or not self.own.is_open or self.own.is_missing):
            ended = self.own is not None and self.own.ended is not None
            self._read = self.own = fresh if self.own is None or ended else replace(self.own, doubt=self._position)
        return was_in_doubt

    def is_rival(self, resource: Mapping[str, Any]) -> bool:
        """Tell whether another user or tenant is linked to the account.

        A link of another user is ignored if the account has a key that was never sent through this link: then the id was reassigned, or two
        workspaces of the server use the same ids. A different creation time is no reason to ignore the link, because some servers return a
        new time in each answer. Nor is an earlier 404, because the account may exist again.
        """
        return any(
            other.remote_id == resource["id"] and not self._is_kin(other) and not _has_other_key(other, resource) for other in self._others
        )

    def is_own(self, remote_id: str) -> bool:
        """Tell whether this action has linked this user to the account."""
        return (link := self.open_link) is not None and link.remote_id == remote_id

    def is_kin(self, remote_id: str) -> bool:
        """Tell whether another action of the tenant has linked this user to the account."""
        return self.kin_link(remote_id) is not None

    def link_to(self, remote_id: str) -> Link | None:
        """Return the link between this user and the account, made by this action or by another action of the tenant."""
        link = self.open_link
        return link if link is not None and link.remote_id == remote_id else self.kin_link(remote_id)

    def kin_link(self, remote_id: str) -> Link | None:
        """Return the link of another action of the tenant between this user and the account."""
        return next((other for other in self._others if other.remote_id == remote_id and self._is_kin(other)), None)

    @property
    def inherited(self) -> Link | None:
        """Return the newest link of another action of the tenant. None if this action has a link of the user.

        The other action may have been deleted already. Its links remain, because the accounts still belong to the users.
        """
        if not self._knows_no_account:
            return None
        return max((other for other in self._others if self._is_kin(other)), key=lambda link: link.birth, default=None)

    def inherit(self, link: Link | None) -> None:
        """Copy the verified link of another action if this action has no link of the user."""
        if link is not None and self._is_kin(link) and self._knows_no_account:
            own = self._own_or_new()
            told: dict[str, Any] = {"birth": max(link.birth, own.birth), "position": own.position, "doubt": own.doubt, "is_missing": False}
            self.own = replace(link, action_id=own.action_id, **told)

    @property
    def is_key_shared(self) -> bool:
        """Whether another tenant provisions a user with the same id to this server, so that the key alone does not prove ownership."""
        return self._is_key_shared

    @property
    def has_rival_user(self) -> bool:
        """Whether another tenant has linked a user with the same id to an account on this server."""
        owner = self._owner
        return any(other.user_id == owner.user_id and other.tenant_id != owner.tenant_id for other in self._others)

    def shows_creation(self, other_than: str) -> bool:
        """Tell whether the server has ever returned a different creation time. If it has, its creation times distinguish accounts."""
        return self._rows is not None and self._rows.shows_creation(other_than)

    def created(self, resource: Mapping[str, Any], *, user_name: str, key: str) -> None:
        """Link the account that a create request made. If the id of the account is unusable, the doubt remains."""
        if not _is_usable(resource["id"]):
            return
        names = (user_name,) if user_name else ()
        self.own = replace(
            self._own_or_new(),
            **_facts(resource),
            birth=self._position,
            ended=None,
            user_names=names,
            user_name=user_name,
            keys=(key,),
            # The answer may echo a key that the server does not store. Only a read proves that the key is stored.
            is_keyed=False,
            doubt=None,
            origin="created",
            is_suspect=False,
        )

    def seen(self, resource: Mapping[str, Any], *, key: str, origin: str = "seen", is_echo: bool = False) -> None:
        """Link an account that the server returned with our key.

        `is_echo` marks the answer to a write: the answer may contain a key and a creation time that the server does not store.
        """
        if not _is_usable(resource["id"]):
            return
        known, facts = self._own_or_new(), _facts({**resource, "meta": None} if is_echo else resource)
        if known.is_open and known.remote_id == resource["id"]:
            steady = _steady(known, facts["created_there"])
            is_keyed = known.is_keyed or not is_echo
            self.own = replace(known, created_there=steady, is_keyed=is_keyed, is_missing=False, doubt=None, keys=_with(known.keys, key))
            return
        # The link does not begin at the position of this event: the account existed before, and older events that are still to be delivered
        # must not be skipped.
        birth = known.birth if known.ended is None else known.ended + 1
        named = replace(known, user_names=(), user_name="") if known.remote_id or known.ended is not None else known
        told: dict[str, Any] = {"keys": (key,), "is_keyed": not is_echo, "doubt": None, "origin": origin, "is_suspect": False}
        self.own = replace(named, **facts, **told, birth=birth, ended=None)

    def suspected(self, resource: Mapping[str, Any], *, user_name: str = "", key: str = "") -> None:
        """Link an account as a suspect, because it matches only by user name, or by a key that proves nothing.

        `user_name` and `key` were sent to the account. The state of the account in `resource` becomes the witness once the link is
        confirmed.
        """
        if self.open_link is not None or not _is_usable(resource["id"]):
            return
        known, facts, shown = self._own_or_new(), _facts(resource), resource.get("externalId")
        names = dict.fromkeys(name for name in (resource.get("userName"), user_name) if name and isinstance(name, str))
        keys = dict.fromkeys(name for name in (shown, key) if name and isinstance(name, str))
        told: dict[str, Any] = {"user_names": tuple(names), "user_name": user_name, "keys": tuple(keys), "is_keyed": bool(shown)}
        if known.is_suspect and known.remote_id == facts["remote_id"] and any(known.has_sent(name) for name in names):
            facts["created_there"] = _steady(known, facts["created_there"])
        birth = known.birth if known.ended is None else known.ended + 1
        self.own = replace(known, **facts, **told, birth=birth, ended=None, origin="by name", is_suspect=True)

    def found_again(self, resource: Mapping[str, Any]) -> None:
        """Record that the linked account was verified; store its creation time and user name if they were unknown."""
        if (link := self.open_link) is None or link.remote_id != resource["id"]:
            return
        name = resource.get("userName")
        names = (name,) if isinstance(name, str) and name and link.takes_first_read else link.user_names
        self.own = replace(link, is_missing=False, created_there=_steady(link, creation_of(resource)), user_names=names)

    def gone(self, remote_id: str) -> None:
        """Record that the server reported this account as missing."""
        self._gone.add(remote_id)
        if (link := self.open_link) is not None and link.remote_id == remote_id:
            self.own = replace(link, is_missing=True)
            self.is_just_gone = True

    def announce(self, user_name: str, key: str) -> bool:
        """Store the user name and key before they are sent to the account; return False if a newer run has written the link."""
        link = self.open_link
        if link is None or (link.has_sent(user_name) and key in link.keys):
            return True
        names = _kept((*(name for name in link.user_names if name != user_name), user_name), confirmed=link.user_name)
        self.own = replace(link, user_names=names, keys=_with(link.keys, key), position=max(link.position, self._position))
        return self._store()

    def confirmed(self, user_name: str) -> None:
        """Record that the server has accepted this user name."""
        if (link := self.open_link) is not None and link.user_name != user_name:
            self.own = replace(link, user_name=user_name)

    def refused(self, user_name: str) -> None:
        """Remove a user name that the server refused because another account has it."""
        if (link := self.open_link) is not None and link.user_name != user_name:
            self.own = replace(link, user_names=tuple(name for name in link.user_names if name != user_name))

    def not_created(self) -> None:
        """Remove the doubt, because no account was created."""
        if self.own is not None:
            self.own = replace(self.own, doubt=None)

    def not_sent(self) -> None:
        """Remove the doubt immediately, because the create request was not sent."""
        if self.own is not None and self.own.doubt is not None:
            self.own = replace(self.own, doubt=None)
            self._store()

    def deleted(self) -> None:
        """End the link after the deletion of the user. User names and keys of the deleted user are removed.

        Also ends the links that other actions have to the account, because a deleted action receives no event that would end its links.
        """
        gone: dict[str, Any] = {"user_names": (), "user_name": "", "keys": (), "doubt": None, "is_missing": False}
        accounts = {*self._gone, *([self.own.remote_id] if self.own is not None else [])}
        kin = [other for other in self._others if self._is_kin(other) and other.remote_id in accounts and other.birth <= self._position]
        self._ended_kin = [replace(other, ended=self._position, **gone) for other in kin]
        if self.own is not None:
            self.own = replace(self.own, ended=self._position, **gone)

    @property
    def is_suspected(self) -> bool:
        """Whether the user's link is a suspect, and the server has not reported the linked account as missing."""
        return self.own is not None and self.own.is_suspect and self.own.ended is None and not self.own.is_missing

    def _take(self, rows: list[Link]) -> None:
        owner = self._owner
        same = [row for row in rows if (row.action_id, row.user_id) == (owner.action_id, owner.user_id)]
        changed = self.own != self._read
        self._read = same[0] if same else None
        if not changed:
            self.own = self._read
        others = [row for row in rows if row not in same]
        self._others = [row for row in others if row.is_open]
        # Ignore rows that have neither an account nor a doubt: any tenant could create such a row, and so make the key count as shared.
        same_id = [row for row in others if row.user_id == owner.user_id and row.tenant_id != owner.tenant_id]
        self._is_key_shared = any(row.remote_id or row.doubt is not None for row in same_id)

    def _is_kin(self, other: Link) -> bool:
        return (other.tenant_id, other.user_id) == (self._owner.tenant_id, self._owner.user_id)

    @property
    def _knows_no_account(self) -> bool:
        return self.own is None or (not self.own.remote_id and self.own.ended is None)

    def _own_or_new(self) -> Link:
        return self.own or self._owner

    def _store(self) -> bool:
        if self._rows is None or self.own is None:
            return True
        is_stored = self._rows.write(self.own)
        self._read = self.own
        return is_stored


def untracked() -> LinkBook:
    """Return a book without links, for checks of a server that concern no user."""
    return LinkBook(None, Link("", "", "", ""), position=0)


def _has_other_key(link: Link, resource: Mapping[str, Any]) -> bool:
    """Tell whether an account with the linked id has a key that the action of the link never sent to the account."""
    key = resource.get("externalId")
    return bool(key) and bool(link.keys) and key not in link.keys


def _is_usable(remote_id: str) -> bool:
    return 0 < len(remote_id) <= LONGEST_ID and remote_id.isprintable()


def _facts(resource: Mapping[str, Any]) -> dict[str, Any]:
    return {"remote_id": str(resource["id"]), "created_there": creation_of(resource), "is_missing": False}


def _steady(known: Link, created: str) -> str:
    """Return the creation time to store for a verified account: the creation time that was read last, or `UNSTABLE` if the server returns
    varying creation times.
    """
    if not created or not known.created_there:
        return created or known.created_there
    return created if same_instant(created, known.created_there) else UNSTABLE


def _with(keys: tuple[str, ...], key: str) -> tuple[str, ...]:
    return (*(kept for kept in keys if kept != key), key)[-_MOST_NAMES:]


def _kept(names: tuple[str, ...], *, confirmed: str) -> tuple[str, ...]:
    """Drop the oldest name beyond the limit, but never the last confirmed name."""
    while len(names) > _MOST_NAMES:
        oldest = next(name for name in names if name != confirmed)
        names = tuple(name for name in names if name != oldest)
    return names
