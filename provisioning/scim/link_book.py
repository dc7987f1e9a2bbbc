"""The links of one user in one run: what they say of accounts that a server shows, and what the run learns of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from provisioning.scim.instants import same_instant
from provisioning.scim.links import LONGEST_ID, UNSTABLE, Link, creation_of

# A server is asked for a user by one of so many names: what waits in a lane renames a user a few times at most.
_MOST_NAMES = 4


class LinkRows(Protocol):
    """Where links are kept; see `provisioning.links.rows`."""

    def read(self, remote_ids: Sequence[str]) -> list[Link]:
        """Return the links of the server that name the user or one of these accounts, of every tenant."""

    def begin(self, link: Link) -> list[Link]:
        """Return what `read` returns, and note the doubt of `link`, committed, unless an account of the user is known."""

    def write(self, link: Link) -> bool:
        """Store a link at once; False when a newer event has written it."""

    def shows_creation(self, other_than: str) -> bool:
        """Tell whether the server has shown another creation time than this one."""


class LinkBook:
    """The links that concern one user in one run, and what the run has learned of them.

    What must be known before a request is written at once; everything else waits in `changes` for the outcome of the run.
    """

    def __init__(self, rows: LinkRows | None, owner: Link, *, position: int) -> None:
        self._rows = rows
        self._owner = owner
        self._position = position
        self._read: Link | None = None
        self._others: list[Link] = []
        self.own: Link | None = None
        self._is_key_shared = False
        # Links of other actions that end with the user, and the accounts of which the server has said in this run that they are gone.
        self._ended_kin: list[Link] = []
        self._gone: set[str] = set()
        # Whether the server has said in this run that the linked account does not exist.
        self.is_just_gone = False

    @property
    def changes(self) -> tuple[Link, ...]:
        """Return the links that the run leaves other than they are stored."""
        changed = [*self._ended_kin] if self.own is None or self.own == self._read else [self.own, *self._ended_kin]
        return tuple(replace(link, position=max(link.position, self._position)) for link in changed)

    @property
    def open_link(self) -> Link | None:
        """Return the link of this user if it may authorize a write."""
        return self.own if self.own is not None and self.own.is_open else None

    @property
    def is_in_doubt(self) -> bool:
        """Whether a create of this user was sent whose answer is not known."""
        return self.own is not None and self.own.doubt is not None

    @property
    def is_linked_before(self) -> bool:
        """Whether an earlier event has linked the account: a create that meets it has something new to tell."""
        return self._read is not None and self._read.is_open and 0 < self._read.birth < self._position

    @property
    def is_stale(self) -> bool:
        """Whether the event is older than the account, or no newer than its deletion: it must not write anything."""
        link = self.inherited or self.own
        if link is None:
            return False
        return link.birth > self._position or (link.ended is not None and link.ended >= self._position)

    def look(self, remote_ids: Iterable[str] = ()) -> None:
        """Read what is known of the user and of these accounts."""
        if self._rows is not None:
            self._take(self._rows.read([remote_id for remote_id in remote_ids if _is_usable(remote_id)]))

    def begin_create(self, *, user_name: str, key: str) -> bool:
        """Note, committed, that a create is about to be sent; return whether an earlier one was in doubt already."""
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

        Only another key shows that the id was given again, or that two workspaces of the server count their accounts alike. A creation
        time does not: some servers show another one in each answer. Neither does an answer that the account is gone: it may be back.
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
        """Return the link between this user and the account, of this action or of another one of the tenant."""
        link = self.open_link
        return link if link is not None and link.remote_id == remote_id else self.kin_link(remote_id)

    def kin_link(self, remote_id: str) -> Link | None:
        """Return the link of another action of the tenant between this user and the account."""
        return next((other for other in self._others if other.remote_id == remote_id and self._is_kin(other)), None)

    @property
    def inherited(self) -> Link | None:
        """Return the newest link of another action of the tenant, where this action has known no account of the user.

        The other action may be deleted: its links stay, because the accounts stay the users'.
        """
        if not self._knows_no_account:
            return None
        return max((other for other in self._others if self._is_kin(other)), key=lambda link: link.birth, default=None)

    def inherit(self, link: Link | None) -> None:
        """Take over the link of another action whose account has proven itself, where this action has known no account of the user."""
        if link is not None and self._is_kin(link) and self._knows_no_account:
            own = self._own_or_new()
            told: dict[str, Any] = {"birth": max(link.birth, own.birth), "position": own.position, "doubt": own.doubt, "is_missing": False}
            self.own = replace(link, action_id=own.action_id, **told)

    @property
    def is_key_shared(self) -> bool:
        """Whether another tenant brings a user of the same id to this server, so that the key alone does not tell whose an account is."""
        return self._is_key_shared

    @property
    def has_rival_user(self) -> bool:
        """Whether another tenant is linked to an account of a user of the same id on this server."""
        owner = self._owner
        return any(other.user_id == owner.user_id and other.tenant_id != owner.tenant_id for other in self._others)

    def shows_creation(self, other_than: str) -> bool:
        """Tell whether creation times of this server tell its accounts apart: whether it has shown another one."""
        return self._rows is not None and self._rows.shows_creation(other_than)

    def created(self, resource: Mapping[str, Any], *, user_name: str, key: str) -> None:
        """Learn the account that a create has just made. One whose id cannot be used again leaves the user in doubt."""
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
            # The answer may echo a key that the server does not keep: only a read shows that it does.
            is_keyed=False,
            doubt=None,
            origin="created",
            is_suspect=False,
        )

    def seen(self, resource: Mapping[str, Any], *, key: str, origin: str = "seen", is_echo: bool = False) -> None:
        """Learn an account from an item of the server that carries our key.

        The answer to a write is an echo: the server may keep neither the key nor the time that it shows there.
        """
        if not _is_usable(resource["id"]):
            return
        known, facts = self._own_or_new(), _facts({**resource, "meta": None} if is_echo else resource)
        if known.is_open and known.remote_id == resource["id"]:
            steady = _steady(known, facts["created_there"])
            is_keyed = known.is_keyed or not is_echo
            self.own = replace(known, created_there=steady, is_keyed=is_keyed, is_missing=False, doubt=None, keys=_with(known.keys, key))
            return
        # Not the position of this event: the account was there before, and an older event may still be owed to it.
        birth = known.birth if known.ended is None else known.ended + 1
        named = replace(known, user_names=(), user_name="") if known.remote_id or known.ended is not None else known
        told: dict[str, Any] = {"keys": (key,), "is_keyed": not is_echo, "doubt": None, "origin": origin, "is_suspect": False}
        self.own = replace(named, **facts, **told, birth=birth, ended=None)

    def suspected(self, resource: Mapping[str, Any], *, user_name: str = "", key: str = "") -> None:
        """Remember an account that is the user's by its name or by a key that proves nothing; it authorizes nothing until confirmed.

        `user_name` and `key` were sent to the account, which was read as `resource`. What it shows becomes the witness of a confirmed link.
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
        """Note that the linked account has proven itself, and its creation time and name where none was known."""
        if (link := self.open_link) is None or link.remote_id != resource["id"]:
            return
        name = resource.get("userName")
        names = (name,) if isinstance(name, str) and name and link.takes_first_read else link.user_names
        self.own = replace(link, is_missing=False, created_there=_steady(link, creation_of(resource)), user_names=names)

    def gone(self, remote_id: str) -> None:
        """Note that the server says this account does not exist."""
        self._gone.add(remote_id)
        if (link := self.open_link) is not None and link.remote_id == remote_id:
            self.own = replace(link, is_missing=True)
            self.is_just_gone = True

    def announce(self, user_name: str, key: str) -> bool:
        """Store, before a write, the name and the key that the account is about to get; False when a newer run keeps that from it."""
        link = self.open_link
        if link is None or (link.has_sent(user_name) and key in link.keys):
            return True
        names = _kept((*(name for name in link.user_names if name != user_name), user_name), confirmed=link.user_name)
        self.own = replace(link, user_names=names, keys=_with(link.keys, key), position=max(link.position, self._position))
        return self._store()

    def confirmed(self, user_name: str) -> None:
        """Note that the account has this name now."""
        if (link := self.open_link) is not None and link.user_name != user_name:
            self.own = replace(link, user_name=user_name)

    def refused(self, user_name: str) -> None:
        """Forget a name that the server refused because another account has it."""
        if (link := self.open_link) is not None and link.user_name != user_name:
            self.own = replace(link, user_names=tuple(name for name in link.user_names if name != user_name))

    def not_created(self) -> None:
        """Take back the doubt of a create that the server has refused."""
        if self.own is not None:
            self.own = replace(self.own, doubt=None)

    def not_sent(self) -> None:
        """Take back, at once, the doubt of a create that was not sent."""
        if self.own is not None and self.own.doubt is not None:
            self.own = replace(self.own, doubt=None)
            self._store()

    def deleted(self) -> None:
        """End the link: the event that deletes the user is settled. Names and keys of a deleted user are not kept.

        Links of other actions to the account end with it: an action that is deleted meanwhile gets no event that could end them.
        """
        gone: dict[str, Any] = {"user_names": (), "user_name": "", "keys": (), "doubt": None, "is_missing": False}
        accounts = {*self._gone, *([self.own.remote_id] if self.own is not None else [])}
        kin = [other for other in self._others if self._is_kin(other) and other.remote_id in accounts and other.birth <= self._position]
        self._ended_kin = [replace(other, ended=self._position, **gone) for other in kin]
        if self.own is not None:
            self.own = replace(self.own, ended=self._position, **gone)

    @property
    def is_suspected(self) -> bool:
        """Whether an account was written that only its name had proven, and that no administrator has confirmed."""
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
        # A row without an account and without a doubt says nothing: any tenant could write it.
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
    """Return a book without links, for a server's own probes."""
    return LinkBook(None, Link("", "", "", ""), position=0)


def _has_other_key(link: Link, resource: Mapping[str, Any]) -> bool:
    """Tell whether an account with the linked id carries a key that was never sent to it."""
    key = resource.get("externalId")
    return bool(key) and bool(link.keys) and key not in link.keys


def _is_usable(remote_id: str) -> bool:
    return 0 < len(remote_id) <= LONGEST_ID and remote_id.isprintable()


def _facts(resource: Mapping[str, Any]) -> dict[str, Any]:
    return {"remote_id": str(resource["id"]), "created_there": creation_of(resource), "is_missing": False}


def _steady(known: Link, created: str) -> str:
    """Return what to keep of the creation time of an account that is certainly the known one: the time as it was read last."""
    if not created or not known.created_there:
        return created or known.created_there
    return created if same_instant(created, known.created_there) else UNSTABLE


def _with(keys: tuple[str, ...], key: str) -> tuple[str, ...]:
    return (*(kept for kept in keys if kept != key), key)[-_MOST_NAMES:]


def _kept(names: tuple[str, ...], *, confirmed: str) -> tuple[str, ...]:
    """Drop the oldest name beyond the limit, but never the one that the account is known to have had last."""
    while len(names) > _MOST_NAMES:
        oldest = next(name for name in names if name != confirmed)
        names = tuple(name for name in names if name != oldest)
    return names
