"""Used DPoP proofs: recorded in Redis, or in PostgreSQL while Redis is unavailable.

Each of these two stores of used proofs has its own generation of nonces. A proof that was recorded in the store that is not in use now must
not be accepted again. If it has a nonce, the nonce is of the generation of that store, so the proof is refused. If it has no nonce, it is
refused, too: the service requires a nonce in every proof while PostgreSQL is in use, and for two and a half minutes after a generation of
Redis has begun. A restarted Redis server and a promoted replica may lack the latest records, so a generation belongs to one run of one
server. Decision: docs/adr/0125.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any
from weakref import WeakKeyDictionary

import redis
from django.conf import settings

from authapi.client_auth.replays import use_once
from authapi.possession.nonces import current_nonce, is_current
from authapi.possession.proofs import Proof
from foundation.memory.outage_guard import OutageGuard
from foundation.memory.redis_clients import redis_pool

# How long a use is recorded: longer than any proof is valid. Without a nonce, a proof is valid for the minute before and the minute after
# its `iat`. With a nonce, a proof is valid for two minutes at most.
REMEMBERED_SECONDS = 150
_OF_POSTGRESQL = "p"
_PURPOSE = "dpop\x00"
# How long a process caches the generation, in seconds. When a use is recorded, the generation is read again.
_KNOWN_SECONDS = 1.0
# KEYS: the Redis key of the generation. ARGV: the generation that the caller has read (empty: none), and its successor. Returns the stored
# generation.
_RENEW = """
local stored = redis.call('GET', KEYS[1]) or ''
if stored ~= ARGV[1] then return stored end
redis.call('SET', KEYS[1], ARGV[2])
return ARGV[2]
"""


class NonceWanted(Exception):
    """The proof needs a current nonce of this service: `nonce`."""

    def __init__(self, nonce: str) -> None:
        super().__init__(self.__doc__)
        self.nonce = nonce


class ProofUsed(Exception):
    """The proof was used before."""


@dataclass(frozen=True)
class Generation:
    """One store of used proofs. A store with `is_young` may lack uses that an earlier store recorded."""

    name: str
    is_young: bool


class UsedProofs:
    """The access of this process to the stores of used proofs. An outage guard chooses PostgreSQL while Redis is unavailable."""

    def __init__(self, redis_url: str, *, prefix: str) -> None:
        self._pool = redis_pool(redis_url)
        self._redis = redis.Redis(connection_pool=self._pool)
        self._guard = OutageGuard()
        self._name = f"{prefix}:dpop:generation"
        self._prefix = f"{prefix}:dpop:used:"
        self._known: tuple[float, Generation] | None = None
        # The run of the Redis server (`run_id`) at the other end of each open connection.
        self._runs: WeakKeyDictionary[Any, str] = WeakKeyDictionary()

    def generation(self) -> Generation:
        """Return the current generation from a cache, which is at most a second old."""
        if self._known is not None and time.monotonic() - self._known[0] < _KNOWN_SECONDS:
            return self._known[1]
        return self._learned(self._guard.ask(self._generation_of_redis, lambda: _POSTGRESQL))

    def note(self, tenant_id: str, proof: Proof) -> tuple[bool, Generation]:
        """Record the use of a proof; return whether it is the first use, and the generation that has recorded it."""
        shared = partial(self._note_in_redis, tenant_id, proof)
        is_first, generation = self._guard.ask(shared, lambda: (_note_in_postgresql(tenant_id, proof), _POSTGRESQL))
        return is_first, self._learned(generation)

    def _learned(self, generation: Generation) -> Generation:
        self._known = (time.monotonic(), generation)
        return generation

    def _note_in_redis(self, tenant_id: str, proof: Proof) -> tuple[bool, Generation]:
        key = self._prefix + hashlib.sha256(f"{tenant_id}\x00{proof.thumbprint}\x00{proof.jti}".encode()).hexdigest()
        (is_first, name), run = self._asked(("SET", key, 1, "NX", "PX", REMEMBERED_SECONDS * 1000), ("GET", self._name))
        return bool(is_first), self._current(name, run)

    def _generation_of_redis(self) -> Generation:
        (name,), run = self._asked(("GET", self._name))
        return self._current(name, run)

    def _current(self, name: bytes | None, run: str) -> Generation:
        """Return the generation `name` if it belongs to this run of the Redis server, otherwise a new generation."""
        stored = (name or b"").decode("latin-1")
        if stored.endswith(f".{run}"):
            return _generation(stored)
        # Redis is new, has lost its data, was restarted, or is a promoted replica. One process sets the name of the new generation.
        successor = f"{int(time.time())}.{secrets.token_hex(8)}.{run}"
        (found,), run_of_renewal = self._asked(("EVAL", _RENEW, 1, self._name, stored, successor))
        if run_of_renewal != run or not found.decode("latin-1").endswith(f".{run}"):
            # The generation has changed again, because another failover has just happened. Treat Redis as unavailable.
            raise redis.RedisError("The generation of nonces changed while it was read.")
        return _generation(found.decode("latin-1"))

    def _asked(self, *commands: tuple[str | int, ...]) -> tuple[list[Any], str]:
        """Send several commands to Redis at once. Return their answers, and the run of the server that gave these answers.

        A pipeline of redis-py would take five times as much CPU time.
        """
        connection: Any = self._pool.get_connection()
        try:
            run = self._runs.get(connection) or self._run_of(connection)
            connection.send_packed_command(connection.pack_commands(commands), check_health=False)
            return [connection.read_response() for _ in commands], run
        except BaseException:
            # Close the connection to Redis: otherwise the next command would read the answers to these commands as its own.
            connection.disconnect()
            raise
        finally:
            self._pool.release(connection)

    def _run_of(self, connection: Any) -> str:
        """Read the run of the Redis server. The result is cached until the connection to Redis is opened again."""
        connection.register_connect_callback(self._forget_run)
        connection.send_command("INFO", "server", check_health=False)
        lines = connection.read_response().decode().splitlines()
        run = next(line.partition(":")[2] for line in lines if line.startswith("run_id:"))
        self._runs[connection] = run
        return str(run)

    def _forget_run(self, connection: Any) -> None:
        self._runs.pop(connection, None)


def judge(proof: Proof, *, tenant_id: str, needs_nonce: bool) -> None:
    """Check the nonce of a proof and record its use. Raises `NonceWanted` or `ProofUsed`."""
    used = used_proofs()
    generation = used.generation()
    _check_nonce(proof, tenant_id, generation, needs_nonce=needs_nonce)
    is_first, noted = used.note(tenant_id, proof)
    if noted.name != generation.name:
        # The store that recorded the use is not the store for which the nonce was checked. Check the nonce again, for the recording store.
        _check_nonce(proof, tenant_id, noted, needs_nonce=True)
    if not is_first:
        raise ProofUsed


def fresh_nonce(tenant_id: str) -> str:
    """Return the current nonce of the current generation."""
    return current_nonce(tenant_id, used_proofs().generation().name)


@lru_cache(maxsize=1)
def used_proofs() -> UsedProofs:
    """Return the access of this process to the stores of used proofs. Connects at the first use."""
    return UsedProofs(settings.REDIS_URL, prefix=settings.REDIS_PREFIX)


def _check_nonce(proof: Proof, tenant_id: str, generation: Generation, *, needs_nonce: bool) -> None:
    is_needed = needs_nonce or generation.is_young
    if (proof.nonce or is_needed) and not is_current(proof.nonce, tenant_id, generation.name):
        raise NonceWanted(current_nonce(tenant_id, generation.name))


def _note_in_postgresql(tenant_id: str, proof: Proof) -> bool:
    until = time.time() + REMEMBERED_SECONDS
    return use_once(tenant_id=tenant_id, client_id=_PURPOSE + proof.thumbprint, jti=proof.jti, until=until)


def _generation(name: str) -> Generation:
    began, _, _ = name.partition(".")
    return Generation(name, is_young=not began.isdigit() or time.time() - int(began) < REMEMBERED_SECONDS)


_POSTGRESQL = Generation(_OF_POSTGRESQL, is_young=True)
