"""A SCIM server that stores nothing and answers immediately, so that a measurement shows only the cost of deliveries.

python -m benchmarks.scim_answers <port>
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
from urllib.parse import parse_qs, urlsplit

_LIST = "urn:ietf:params:scim:api:messages:2.0:ListResponse"


def answer(method: str, target: str, body: bytes) -> tuple[int, bytes]:
    """Return status and body. The answer to a create or replace request contains the sent user, and a lookup always finds the requested
    user.

    Each external id has its own resource id. With one id for all users, the number of links to this id would grow with each measurement.
    """
    if method == "GET":
        external_id = parse_qs(urlsplit(target).query)["filter"][0].split('"')[1]
        user = {
            "schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"],
            "id": _resource_id(external_id),
            "externalId": external_id,
            "userName": "ada@example.test",
        }
        found = {"schemas": [_LIST], "totalResults": 1, "itemsPerPage": 1, "startIndex": 1, "Resources": [user]}
        return 200, json.dumps(found).encode()
    if method == "DELETE":
        return 204, b""
    sent = json.loads(body)
    if method == "POST":
        return 201, json.dumps({**sent, "id": _resource_id(sent["externalId"])}).encode()
    return 200, json.dumps({**sent, "id": target.rpartition("/")[2]}).encode()


def _resource_id(external_id: str) -> str:
    return hashlib.sha256(external_id.encode()).hexdigest()[:32]


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer request after request on one connection."""
    while head := await reader.readuntil(b"\r\n\r\n"):
        lines = head.decode("latin-1").split("\r\n")
        method, target, _ = lines[0].split(" ")
        length = next((int(line.split(":")[1]) for line in lines if line.lower().startswith("content-length:")), 0)
        status, body = answer(method, target, await reader.readexactly(length) if length else b"")
        headers = f"HTTP/1.1 {status} X\r\nContent-Type: application/scim+json\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(headers.encode() + body)
        await writer.drain()


async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        await serve(reader, writer)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main(port: int) -> None:
    server = await asyncio.start_server(handle, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
