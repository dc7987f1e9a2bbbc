"""A management client, which reads and changes a user at a steady rate, as a script of an administrator does.

The client ends when its standard input ends. Run as `python -m benchmarks.stream.management PORT RATE HOST TOKEN USER_ID`; it prints the
statuses and the durations of requests.
"""

from __future__ import annotations

import http.client
import json
import select
import sys
import time
from urllib.parse import quote

_EVERY = 5


def manage(port: int, rate: float, host: str, token: str, user_id: str) -> None:
    """Send four reads and then one change, repeatedly."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    headers = {"Host": host, "Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    taken: list[float] = []
    statuses: set[int] = set()
    due, number = time.monotonic(), 0
    while not select.select([sys.stdin], [], [], max(due - time.monotonic(), 0))[0]:
        due += 1 / rate
        number += 1
        started = time.monotonic()
        if number % _EVERY == 0:
            client.request("PATCH", f"/api/v2/users/{quote(user_id, safe='')}", body=json.dumps({"name": f"Bob {number}"}), headers=headers)
        else:
            client.request("GET", "/api/v2/users?per_page=10", headers=headers)
        answer = client.getresponse()
        answer.read()
        statuses.add(answer.status)
        taken.append(time.monotonic() - started)
    print(json.dumps({"statuses": sorted(statuses), "seconds": taken}))


if __name__ == "__main__":
    manage(int(sys.argv[1]), float(sys.argv[2]), *sys.argv[3:6])
