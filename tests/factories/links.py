"""Account links in memory, for runs without a database. They follow the rules of `provisioning.links.rows`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from provisioning.scim.link_book import LinkBook
from provisioning.scim.links import UNSTABLE, Link

Key = tuple[str, str, str]


@dataclass
class MemoryLinks:
    """The stored links, by action, server and user."""

    rows: dict[Key, Link] = field(default_factory=dict)
    newest: int = 0

    def at(self, position: int, *, tenant_id: str = "acme", action_id: str = "action") -> MemoryRun:
        """Return the links that a run reads if its event is at `position`."""
        self.newest = max(self.newest, position)
        return MemoryRun(self, tenant_id, action_id, position)

    def write(self, link: Link) -> bool:
        key = (link.action_id, link.server, link.user_id)
        old = self.rows.get(key)
        if old is None:
            self.rows[key] = link
            return True
        is_newer = link.birth >= old.birth and (old.ended is None or link.birth > old.ended or (link.ended or 0) > old.ended)
        if not is_newer or (link.position < old.position and old.remote_id):
            return False
        is_confirmed = old.remote_id == link.remote_id and old.ended is None and not old.is_suspect
        self.rows[key] = replace(link, is_suspect=link.is_suspect and not is_confirmed)
        return True

    def only(self) -> Link:
        """Return the only link."""
        (link,) = self.rows.values()
        return link


@dataclass
class MemoryRun:
    """The links of one run."""

    kept: MemoryLinks
    tenant_id: str
    action_id: str
    position: int
    books: list[LinkBook] = field(default_factory=list)

    def book(self, server: str, user_id: str) -> LinkBook:
        book = LinkBook(
            MemoryRows(self.kept, server, user_id), Link(self.tenant_id, self.action_id, server, user_id), position=self.position
        )
        self.books.append(book)
        return book

    @contextmanager
    def lock(self, server: str, user_id: str, *, seconds: float) -> Iterator[None]:
        yield

    def settle(self) -> None:
        """Write the links that the run has changed, as a delivery does when it stores its outcome."""
        for book in self.books:
            for link in book.changes:
                self.kept.write(link)


@dataclass
class MemoryRows:
    kept: MemoryLinks
    server: str
    user_id: str

    def read(self, remote_ids: Sequence[str]) -> list[Link]:
        rows = [link for link in self.kept.rows.values() if link.server == self.server]
        return [link for link in rows if link.user_id == self.user_id or (link.remote_id and link.remote_id in remote_ids)]

    def begin(self, link: Link) -> list[Link]:
        known = self.read(())
        key = (link.action_id, link.server, link.user_id)
        old = self.kept.rows.get(key)
        if old is None or (old.ended is not None and old.ended < link.birth):
            self.kept.rows[key] = link
        elif old.ended is None and old.birth <= link.birth and (not old.remote_id or old.is_missing or old.is_suspect):
            self.kept.rows[key] = replace(old, doubt=link.doubt, position=max(old.position, link.position))
        return known

    def write(self, link: Link) -> bool:
        return self.kept.write(link)

    def shows_creation(self, other_than: str) -> bool:
        shown = {link.created_there for link in self.kept.rows.values() if link.server == self.server} - {"", UNSTABLE}
        return any(created[:19] != other_than[:19] for created in shown)
