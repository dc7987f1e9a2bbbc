"""Passwords with hashes of other systems: which descriptions are accepted, and whether a clear-text password matches such a hash. Pure.

Acceptance and verification parse a description with the same code, so every accepted description can be verified. Costs are
limited: a hash from a hostile file cannot use a processor for longer than about a second.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import argon2
import bcrypt

from foundation.secrets.md4 import md4

PREFIX = "imported"
# Limits: the most expensive login takes about a second and 128 MiB.
_ARGON2_MOST = {"memory_cost": 128 * 1024, "time_cost": 32, "parallelism": 16}
_ARGON2_MOST_WORK = 512 * 1024
_BCRYPT_MOST_ROUNDS = 14
_BCRYPT_BYTES = 72
_PBKDF2_MOST_WORK = 2_000_000
_SCRYPT_MOST_WORK = 2**21
_SCRYPT_MOST_MEMORY = 128 * 1024 * 1024
_LONGEST_VALUE = 1024
_LONGEST_KEY = 512


def _digest(name: str) -> Callable[[bytes], bytes]:
    return lambda text: hashlib.new(name, text, usedforsecurity=False).digest()


_DIGESTS: dict[str, Callable[[bytes], bytes]] = {"md4": md4, **{name: _digest(name) for name in ("md5", "sha1", "sha256", "sha512")}}
_HMAC_DIGESTS = ("md5", "ripemd160", "sha1", "sha224", "sha256", "sha384", "sha512")
_LDAP_SCHEMES = {"MD5": "md5", "SHA": "sha1", "SHA1": "sha1", "SHA256": "sha256", "SHA512": "sha512"}
_LDAP_SALTED = {"SMD5": "md5", "SSHA": "sha1", "SSHA1": "sha1", "SSHA256": "sha256", "SSHA512": "sha512"}
Matches = Callable[[bytes], bool]
_MEMBERS = {"algorithm", "hash", "salt", "password", "keylen", "cost", "blockSize", "parallelization"}
_BCRYPT = re.compile(r"\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}")
_PBKDF2 = re.compile(r"\$pbkdf2-([a-z0-9]+)\$i=(\d{1,9}),l=(\d{1,4})\$([A-Za-z0-9+/.]+)\$([A-Za-z0-9+/.]+)")
_LDAP = re.compile(r"\{([A-Za-z0-9]+)\}([A-Za-z0-9+/=]+)")


class Unusable(ValueError):
    """No password can be verified against a description. `code` is from a closed list; `path` is the invalid member."""

    def __init__(self, code: str, message: str, path: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.path = path


def check(description: Any) -> None:
    """Raise `Unusable` unless a clear-text password can be verified against `description`. Computes no hash."""
    _reader(description)


def stored_form(description: Mapping[str, Any]) -> str:
    """Return the stored form of a checked description."""
    return f"{PREFIX}${json.dumps(description, separators=(',', ':'))}"


def bcrypt_form(value: str) -> str:
    """Return the stored form of a bare bcrypt hash."""
    return stored_form({"algorithm": "bcrypt", "hash": {"value": value}})


def verify(stored: str, password: str) -> bool:
    """Tell whether `password` matches the hash. Returns False also for a stored form that cannot be read."""
    prefix, _, text = stored.partition("$")
    if prefix != PREFIX:
        return False
    try:
        description = json.loads(text)
        return _reader(description)(_encoded(password, description))
    except (ValueError, OverflowError):
        return False


def _reader(description: Any) -> Matches:
    if not isinstance(description, Mapping):
        raise Unusable("OBJECT_REQUIRED", "An object is expected.", "")
    unknown = next((str(name) for name in description if name not in _MEMBERS), None)
    if unknown is not None:
        raise Unusable("NOT_PASSED", "Unknown member.", unknown[:64])
    algorithm = _text(description, "algorithm")
    if algorithm not in _READERS:
        raise Unusable("ENUM_MISMATCH", f"One of {', '.join(_READERS)}.", "algorithm")
    if not isinstance(description.get("hash"), Mapping):
        raise Unusable("OBJECT_REQUIRED", "An object is expected.", "hash")
    _choice(description, "password.encoding", ("ascii", "utf8", "utf16le", "ucs2", "latin1", "binary"), "utf8")
    return _READERS[algorithm](description)


def _encoded(password: str, description: Mapping[str, Any]) -> bytes:
    match _choice(description, "password.encoding", (), "utf8"):
        case "utf8":
            return password.encode("utf-8", "surrogatepass")
        case "utf16le" | "ucs2":
            return password.encode("utf-16-le", "surrogatepass")
        case _:
            # The source systems of these hashes keep only the low byte of each UTF-16 unit.
            return password.encode("utf-16-le", "surrogatepass")[::2]


def _plain_digest(description: Mapping[str, Any]) -> Matches:
    digest = _DIGESTS[description["algorithm"]]
    expected = _decoded(description, "hash.value", "hash.encoding", ("hex", "base64"))
    _require_length(expected, len(digest(b"")))
    salted = _salting(description)
    return lambda password: hmac.compare_digest(digest(salted(password)), expected)


def _hmac(description: Mapping[str, Any]) -> Matches:
    name = _choice(description, "hash.digest", _HMAC_DIGESTS)
    expected = _decoded(description, "hash.value", "hash.encoding", ("hex", "base64"))
    key = _decoded(description, "hash.key.value", "hash.key.encoding", ("utf8", "hex", "base64"))
    _require_length(expected, hashlib.new(name, usedforsecurity=False).digest_size)
    salted = _salting(description)
    return lambda password: hmac.compare_digest(hmac.digest(key, salted(password), name), expected)


def _bcrypt(description: Mapping[str, Any]) -> Matches:
    value = _own_form(description)
    parts = _BCRYPT.fullmatch(value)
    if parts is None:
        raise Unusable("FORMAT", "A bcrypt hash is expected.", "hash.value")
    if not 4 <= int(parts[1]) <= _BCRYPT_MOST_ROUNDS:
        raise Unusable("MAXIMUM", f"The cost is 4 to {_BCRYPT_MOST_ROUNDS}.", "hash.value")
    # bcrypt itself ignores bytes after the 72nd; the library refuses longer input, so cut it here.
    return lambda password: bcrypt.checkpw(password[:_BCRYPT_BYTES], value.encode())


def _argon2(description: Mapping[str, Any]) -> Matches:
    value = _own_form(description)
    try:
        parameters = argon2.extract_parameters(value)
    except (argon2.exceptions.InvalidHashError, ValueError, KeyError) as error:
        raise Unusable("FORMAT", "A PHC string of argon2 is expected.", "hash.value") from error
    costs = {name: int(getattr(parameters, name)) for name in _ARGON2_MOST}
    if (
        any(not 0 < costs[name] <= most for name, most in _ARGON2_MOST.items())
        or costs["memory_cost"] * costs["time_cost"] > _ARGON2_MOST_WORK
    ):
        raise Unusable("MAXIMUM", "The hash needs more memory or passes than this service allows for a password.", "hash.value")

    def matches(password: bytes) -> bool:
        try:
            return argon2.PasswordHasher().verify(value, password)
        except (argon2.exceptions.VerificationError, argon2.exceptions.InvalidHashError):
            return False

    return matches


def _pbkdf2(description: Mapping[str, Any]) -> Matches:
    parts = _PBKDF2.fullmatch(_own_form(description))
    if parts is None or parts[1] not in _HMAC_DIGESTS:
        raise Unusable("FORMAT", "A PHC string $pbkdf2-<digest>$i=<iterations>,l=<length>$<salt>$<hash> is expected.", "hash.value")
    name, iterations, length = parts[1], int(parts[2]), int(parts[3])
    salt, expected = _unpadded(parts[4]), _unpadded(parts[5])
    _require_length(expected, length)
    blocks = -(-length // hashlib.new(name, usedforsecurity=False).digest_size)
    if not 0 < iterations * blocks <= _PBKDF2_MOST_WORK:
        raise Unusable("MAXIMUM", f"At most {_PBKDF2_MOST_WORK} rounds over all blocks.", "hash.value")
    return lambda password: hmac.compare_digest(hashlib.pbkdf2_hmac(name, password, salt, iterations, length), expected)


def _scrypt(description: Mapping[str, Any]) -> Matches:
    expected = _decoded(description, "hash.value", "hash.encoding", ("hex", "base64"))
    salt = _decoded(description, "salt.value", "salt.encoding", ("utf8", "hex", "base64"))
    length = _whole(description, "keylen", None, _LONGEST_KEY)
    cost, size, lanes = (
        _whole(description, name, default, 2**24) for name, default in (("cost", 16384), ("blockSize", 8), ("parallelization", 1))
    )
    _require_length(expected, length)
    # RFC 7914, 2: the cost is a power of two and greater than one.
    if cost < 2 or cost & (cost - 1):
        raise Unusable("FORMAT", "The cost is a power of two.", "cost")
    if cost * size * lanes > _SCRYPT_MOST_WORK or 128 * cost * size > _SCRYPT_MOST_MEMORY:
        raise Unusable("MAXIMUM", "cost, blockSize and parallelization exceed what this service allows for a password.", "cost")
    memory = 2 * 128 * size * (cost + lanes) + 1024 * 1024
    options = {"salt": salt, "n": cost, "r": size, "p": lanes, "dklen": length, "maxmem": memory}
    return lambda password: hmac.compare_digest(hashlib.scrypt(password, **options), expected)  # type: ignore[arg-type]  # numbers and a salt


def _ldap(description: Mapping[str, Any]) -> Matches:
    # RFC 2307, 5.3: the scheme in braces, then the digest, followed by the salt in the salted schemes.
    parts = _LDAP.fullmatch(_own_form(description))
    scheme = parts[1].upper() if parts else ""
    name = _LDAP_SCHEMES.get(scheme) or _LDAP_SALTED.get(scheme)
    if parts is None or name is None:
        raise Unusable("FORMAT", "A value such as {SSHA}<base64> is expected.", "hash.value")
    raw = _from_base64(parts[2], "hash.value")
    size = len(_DIGESTS[name](b""))
    if len(raw) < size or (scheme in _LDAP_SCHEMES and len(raw) != size):
        raise Unusable("FORMAT", f"A digest of {size} bytes is expected.", "hash.value")
    return lambda password: hmac.compare_digest(_DIGESTS[name](password + raw[size:]), raw[:size])


_READERS: dict[str, Callable[[Mapping[str, Any]], Matches]] = {
    "argon2": _argon2,
    "bcrypt": _bcrypt,
    "hmac": _hmac,
    "ldap": _ldap,
    **dict.fromkeys(_DIGESTS, _plain_digest),
    "pbkdf2": _pbkdf2,
    "scrypt": _scrypt,
}


def _own_form(description: Mapping[str, Any]) -> str:
    """Return a hash whose text contains its salt and costs. Separate members for salt and costs are refused."""
    beside = next((name for name in ("salt", "keylen", "cost", "blockSize", "parallelization") if name in description), None)
    if beside is not None:
        raise Unusable("NOT_PASSED", "The hash of this algorithm already contains this value.", beside)
    _choice(description, "hash.encoding", ("utf8",), "utf8")
    return _text(description, "hash.value")


def _salting(description: Mapping[str, Any]) -> Callable[[bytes], bytes]:
    if "salt" not in description:
        return lambda password: password
    salt = _decoded(description, "salt.value", "salt.encoding", ("utf8", "hex", "base64"))
    is_prefix = _choice(description, "salt.position", ("prefix", "suffix"), "prefix") == "prefix"
    return lambda password: salt + password if is_prefix else password + salt


def _decoded(description: Mapping[str, Any], path: str, encoding_path: str, encodings: tuple[str, ...]) -> bytes:
    text = _text(description, path)
    match _choice(description, encoding_path, encodings, "utf8" if "utf8" in encodings else None):
        case "hex":
            try:
                return binascii.unhexlify(text)
            except ValueError as error:
                raise Unusable("FORMAT", "Hexadecimal digits are expected.", path) from error
        case "base64":
            return _from_base64(text, path)
        case _:
            return text.encode("utf-8", "surrogatepass")


def _from_base64(text: str, path: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except ValueError as error:
        raise Unusable("FORMAT", "Base64 is expected.", path) from error


def _unpadded(text: str) -> bytes:
    # Some libraries write a dot instead of the plus sign.
    return _from_base64(text.replace(".", "+"), "hash.value")


def _require_length(expected: bytes, length: int) -> None:
    if len(expected) != length or not length:
        raise Unusable("FORMAT", f"A hash of {length} bytes is expected.", "hash.value")


def _text(description: Mapping[str, Any], path: str, default: str | None = None) -> str:
    value: Any = description
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    if value is None and default is not None:
        return default
    if value is None:
        raise Unusable("OBJECT_REQUIRED", "Missing.", path)
    if not isinstance(value, str):
        raise Unusable("INVALID_TYPE", "Text is expected.", path)
    if len(value) > _LONGEST_VALUE:
        raise Unusable("MAX_LENGTH", f"At most {_LONGEST_VALUE} characters.", path)
    return value


def _choice(description: Mapping[str, Any], path: str, choices: tuple[str, ...], default: str | None = None) -> str:
    value = _text(description, path, default)
    if choices and value not in choices:
        raise Unusable("ENUM_MISMATCH", f"One of {', '.join(choices)}.", path)
    return value


def _whole(description: Mapping[str, Any], name: str, default: int | None, most: int) -> int:
    value = description.get(name, default)
    if value is None:
        raise Unusable("OBJECT_REQUIRED", "Missing.", name)
    if type(value) is not int:
        raise Unusable("INVALID_TYPE", "A whole number is expected.", name)
    if not 0 < value <= most:
        raise Unusable("MAXIMUM", f"1 to {most}.", name)
    return value
