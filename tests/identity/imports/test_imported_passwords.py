"""Imported password hashes.

The published test vectors of each algorithm match only their password. Hostile hashes are refused without computing them.
"""

from __future__ import annotations

import base64
import hashlib
import time
from typing import Any

import argon2
import bcrypt
import pytest
from django.contrib.auth.hashers import check_password, identify_hasher, make_password

from identity.imports.imported_passwords import Unusable, bcrypt_form, check, stored_form, verify


def _b64(digits: str) -> str:
    return base64.b64encode(bytes.fromhex(digits)).decode()


def _unpadded(digits: str) -> str:
    return _b64(digits).rstrip("=")


def plain(algorithm: str, digits: str, **more: Any) -> dict[str, Any]:
    return {"algorithm": algorithm, "hash": {"value": digits, "encoding": "hex"}, **more}


def own(algorithm: str, value: str) -> dict[str, Any]:
    return {"algorithm": algorithm, "hash": {"value": value, "encoding": "utf8"}}


# By the source of the test vector: the description of the hash as in an import, and the password.
VECTORS: dict[str, tuple[dict[str, Any], str]] = {
    "RFC 1320, A.5": (plain("md4", "a448017aaf21d8525fc10ae87aa6729d"), "abc"),
    "RFC 1320, A.5, two blocks": (plain("md4", "e33b4ddc9c38f2199c3e7b164fcc0536"), "1234567890" * 8),
    "MS-NLMP, 4.2.2.1.2": (plain("md4", "a4f49c406510bdcab6824ee7c30fd852", password={"encoding": "utf16le"}), "Password"),
    "RFC 1321, A.5": (plain("md5", "900150983cd24fb0d6963f7d28e17f72"), "abc"),
    "FIPS 180, SHA-1": (plain("sha1", "a9993e364706816aba3e25717850c26c9cd0d89d"), "abc"),
    "FIPS 180, SHA-256": (plain("sha256", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"), "abc"),
    "FIPS 180, SHA-512, base64": (
        {
            "algorithm": "sha512",
            "hash": {
                "value": _b64(
                    "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
                    "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"
                ),
                "encoding": "base64",
            },
        },
        "abc",
    ),
    "SHA-256 of a salt before the password": (
        plain("sha256", hashlib.sha256(b"saltabc").hexdigest(), salt={"value": "salt", "position": "prefix"}),
        "abc",
    ),
    "SHA-256 of a salt behind the password": (
        plain("sha256", hashlib.sha256(b"abc\x00\xff").hexdigest(), salt={"value": "00ff", "encoding": "hex", "position": "suffix"}),
        "abc",
    ),
    "RFC 4231, test case 2": (
        {
            "algorithm": "hmac",
            "hash": {
                "value": "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
                "encoding": "hex",
                "digest": "sha256",
                "key": {"value": "Jefe"},
            },
        },
        "what do ya want for nothing?",
    ),
    "RFC 2202, HMAC-SHA-1, test case 1": (
        {
            "algorithm": "hmac",
            "hash": {
                "value": "b617318655057264e28bc0b6fb378c8ef146be00",
                "encoding": "hex",
                "digest": "sha1",
                "key": {"value": "0b" * 20, "encoding": "hex"},
            },
        },
        "Hi There",
    ),
    "RFC 6070, 4096 iterations": (
        own("pbkdf2", f"$pbkdf2-sha1$i=4096,l=20${_unpadded(b'salt'.hex())}${_unpadded('4b007901b765489abead49d926f721d065a429c1')}"),
        "password",
    ),
    "RFC 6070, two blocks": (
        own(
            "pbkdf2",
            f"$pbkdf2-sha1$i=4096,l=25${_unpadded(b'saltSALTsaltSALTsaltSALTsaltSALTsalt'.hex())}"
            f"${_unpadded('3d2eec4fe41c849b80c8d83662c0e44a8b291a964cf2f07038')}",
        ),
        "passwordPASSWORDpassword",
    ),
    "RFC 7914, 11": (
        own(
            "pbkdf2",
            f"$pbkdf2-sha256$i=1,l=64${_unpadded(b'salt'.hex())}$"
            + _unpadded(
                "55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc"
                "49ca9cccf179b645991664b39d77ef317c71b845b1e30bd509112041d3a19783"
            ),
        ),
        "passwd",
    ),
    "RFC 7914, 12": (
        {
            **plain(
                "scrypt",
                "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2"
                "d5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887",
            ),
            "salt": {"value": "SodiumChloride"},
            "keylen": 64,
            "cost": 16384,
            "blockSize": 8,
            "parallelization": 1,
        },
        "pleaseletmein",
    ),
    "jBCrypt, the letter a, cost 6": (own("bcrypt", "$2a$06$m0CrhHm10qJ3lXRY.5zDGO3rS2KdeeWLuGmsfGlMfOxih58VYVfxe"), "a"),
    "crypt_blowfish, x x": (own("bcrypt", "$2y$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"), "U*U"),
    "PHC argon2, reference test, argon2id v19": (
        own("argon2", "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"),
        "password",
    ),
    "PHC argon2, reference test, argon2i v16": (
        own("argon2", "$argon2i$m=65536,t=2,p=1$c29tZXNhbHQ$9sTbSlTio3Biev89thdrlKKiCaYsjjYVJxGAL3swxpQ"),
        "password",
    ),
    "ldap, SHA": (own("ldap", "{SHA}qZk+NkcGgWq6PiVxeFDCbJzQ2J0="), "abc"),
    "ldap, SSHA": (
        own("ldap", "{ssha}" + base64.b64encode(hashlib.sha1(b"abcsalt", usedforsecurity=False).digest() + b"salt").decode()),
        "abc",
    ),
    "ldap, SMD5": (
        own("ldap", "{SMD5}" + base64.b64encode(hashlib.md5(b"abc12345678", usedforsecurity=False).digest() + b"12345678").decode()),
        "abc",
    ),
    "latin1 keeps the low byte": (
        plain("md5", hashlib.md5("caf\u00e9".encode("latin-1"), usedforsecurity=False).hexdigest(), password={"encoding": "latin1"}),
        "caf\u00e9",
    ),
}
REFUSED: dict[str, tuple[Any, str, str]] = {
    "no object": ("text", "OBJECT_REQUIRED", ""),
    "an unknown member": (plain("md5", "0" * 32, rounds=5), "NOT_PASSED", "rounds"),
    "an unknown algorithm": (plain("crc32", "0" * 8), "ENUM_MISMATCH", "algorithm"),
    "no hash": ({"algorithm": "md5"}, "OBJECT_REQUIRED", "hash"),
    "no encoding": ({"algorithm": "md5", "hash": {"value": "0" * 32}}, "OBJECT_REQUIRED", "hash.encoding"),
    "a digest of another length": (plain("sha256", "0" * 32), "FORMAT", "hash.value"),
    "letters that are not hexadecimal": (plain("md5", "z" * 32), "FORMAT", "hash.value"),
    "a salt that is not an object": (plain("md5", "0" * 32, salt="x"), "OBJECT_REQUIRED", "salt.value"),
    "a salt at an unknown position": (plain("md5", "0" * 32, salt={"value": "x", "position": "middle"}), "ENUM_MISMATCH", "salt.position"),
    "a number as a hash": ({"algorithm": "md5", "hash": {"value": 5, "encoding": "hex"}}, "INVALID_TYPE", "hash.value"),
    "an hmac without a key": (
        {"algorithm": "hmac", "hash": {"value": "0" * 32, "encoding": "hex", "digest": "md5"}},
        "OBJECT_REQUIRED",
        "hash.key.value",
    ),
    "an hmac of an unknown digest": (
        {"algorithm": "hmac", "hash": {"value": "00", "encoding": "hex", "digest": "whirlpool"}},
        "ENUM_MISMATCH",
        "hash.digest",
    ),
    "a salt for a value with its own salt": ({**own("bcrypt", "$2b$10$" + "a" * 53), "salt": {"value": "x"}}, "NOT_PASSED", "salt"),
    "a bcrypt hash that takes days": (own("bcrypt", "$2b$31$" + "a" * 53), "MAXIMUM", "hash.value"),
    "an argon2 hash of a terabyte": (own("argon2", "$argon2id$v=19$m=1073741824,t=2,p=1$c29tZXNhbHQ$" + "A" * 43), "MAXIMUM", "hash.value"),
    "an argon2 hash of many passes": (own("argon2", "$argon2id$v=19$m=65536,t=4000,p=1$c29tZXNhbHQ$" + "A" * 43), "MAXIMUM", "hash.value"),
    "pbkdf2 for ever": (own("pbkdf2", "$pbkdf2-sha1$i=999999999,l=20$c2FsdA$" + "A" * 27), "MAXIMUM", "hash.value"),
    "scrypt without a salt": (plain("scrypt", "00" * 64, keylen=64), "OBJECT_REQUIRED", "salt.value"),
    "scrypt of a terabyte": (plain("scrypt", "00" * 64, salt={"value": "x"}, keylen=64, cost=2**24, blockSize=512), "MAXIMUM", "cost"),
    "scrypt with an invalid cost": (plain("scrypt", "00" * 64, salt={"value": "x"}, keylen=64, cost=1000), "FORMAT", "cost"),
    "an unknown ldap scheme": (own("ldap", "{CRYPT}abcd"), "FORMAT", "hash.value"),
    "a value that is too long": (own("ldap", "{SHA}" + "A" * 5000), "MAX_LENGTH", "hash.value"),
}  # fmt: skip


@pytest.mark.parametrize("name", VECTORS)
def test_a_published_vector_matches_its_password_and_no_other_password(name: str) -> None:
    description, password = VECTORS[name]
    check(description)
    stored = stored_form(description)
    assert verify(stored, password)
    assert not verify(stored, password + "x")
    assert not verify(stored, "")


@pytest.mark.parametrize("name", REFUSED)
def test_hashes_that_cannot_be_verified_or_cost_too_much_are_refused_without_computing_them(name: str) -> None:
    description, code, path = REFUSED[name]
    started = time.monotonic()
    with pytest.raises(Unusable) as refusal:
        check(description)
    assert (refusal.value.code, refusal.value.path) == (code, path)
    # The hash is also not computed if another process has stored the hostile description.
    assert not verify(stored_form(description), "password")
    assert time.monotonic() - started < 1.0


def test_bcrypt_compares_only_the_first_72_bytes_of_a_password() -> None:
    value = bcrypt.hashpw(b"x" * 72, bcrypt.gensalt(4)).decode()
    assert verify(bcrypt_form(value), "x" * 100)
    assert not verify(bcrypt_form(value), "x" * 71)


@pytest.mark.parametrize(
    "stored", ["", "imported$", "imported$[]", "imported${}", "imported$7", "argon2$x", 'imported${"algorithm":"md5"}']
)
def test_an_unreadable_stored_hash_matches_no_password(stored: str) -> None:
    assert not verify(stored, "password")


def test_django_verifies_an_imported_hash_and_replaces_it_once(settings: Any) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher", "identity.hashers.ImportedPasswordHasher"]
    renewed: list[str] = []
    stored = bcrypt_form(bcrypt.hashpw(b"Correct-Horse-7", bcrypt.gensalt(4)).decode())

    assert not check_password("wrong", stored, setter=renewed.append)
    assert renewed == []
    assert check_password("Correct-Horse-7", stored, setter=renewed.append)
    assert renewed == ["Correct-Horse-7"]
    assert identify_hasher(make_password("Correct-Horse-7")).algorithm == "argon2"
    assert argon2.extract_parameters(make_password("x").removeprefix("argon2")).type is argon2.Type.ID
