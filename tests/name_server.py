"""A small name server on a local port. Tests change its TXT records and aliases while it runs."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdatatype
import dns.rrset


class NameServer:
    """A name server that answers over UDP.

    `records` maps names to the texts of their TXT records. `aliases` maps names to other names (CNAME).
    Queries for names in `silent` get no response.
    """

    def __init__(self) -> None:
        self.records: dict[str, list[str]] = {}
        self.aliases: dict[str, str] = {}
        self.silent: set[str] = set()
        self.asked = Event()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._socket.getsockname()

    def serve(self) -> None:
        while True:
            sent, client = self._socket.recvfrom(4096)
            if not sent:
                return
            query = dns.message.from_wire(sent)
            name = query.question[0].name.to_text(omit_final_dot=True)
            self.asked.set()
            if name not in self.silent:
                self._socket.sendto(self._answer(query, name).to_wire(), client)

    def stop(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", self.address)

    def close(self) -> None:
        self._socket.close()

    def _answer(self, query: dns.message.Message, name: str) -> dns.message.Message:
        response = dns.message.make_response(query)
        response.flags |= dns.flags.RA
        target = self.aliases.get(name)
        if target:
            response.answer.append(dns.rrset.from_text(name + ".", 60, "IN", "CNAME", target + "."))
        texts = self.records.get(target or name)
        if texts:
            response.answer.append(dns.rrset.from_text((target or name) + ".", 60, "IN", "TXT", *(f'"{text}"' for text in texts)))
        elif not target:
            response.set_rcode(dns.rcode.NXDOMAIN)
        return response


@contextmanager
def name_server() -> Iterator[NameServer]:
    """Run a name server while the block runs, and yield it."""
    server = NameServer()
    thread = Thread(target=server.serve, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(5)
        server.close()
