"""The fast signature check of proofs accepts only signatures that the library joserfc accepts."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from joserfc import jws
from joserfc.jwk import ECKey

from authapi.possession.es256 import is_verified
from tests.authapi.proving import Prover, encoded, new_key

ADDRESS = "https://a.example.test/oauth/token"


def header_of(text: str) -> dict[str, Any]:
    header: dict[str, Any] = jws.extract_compact(text.encode()).headers()
    return header


def judged(text: str, prover: Prover) -> bool:
    return is_verified(text, header_of(text), prover.key.public_key())


def test_the_fast_check_and_the_library_accept_an_ordinary_proof() -> None:
    prover = Prover()
    text = prover.proof("POST", ADDRESS)
    assert judged(text, prover)
    assert jws.deserialize_compact(text, ECKey.import_key(prover.jwk), algorithms=["ES256"]).payload


def changed(text: str, place: int, value: str) -> str:
    parts = text.split(".")
    parts[place] = value
    return ".".join(parts)


FORGED: dict[str, Any] = {
    "other claims": lambda text: changed(text, 1, encoded(orjson.dumps({"jti": "other"}))),
    "another signature": lambda text: changed(text, 2, encoded(bytes(range(64)))),
    "a signature of zeros": lambda text: changed(text, 2, encoded(bytes(64))),
    "a short signature": lambda text: text[:-4],
    "a signature in DER": lambda text: changed(text, 2, encoded(b"\x30\x45" + bytes(69))),
    "extra bits at the end of the signature": lambda text: text[:-1] + chr(ord(text[-1]) + 1),
    "padding": lambda text: text + "==",
    "a long text": lambda text: changed(text, 1, text.split(".")[1] + "A" * 1500),
}


@pytest.mark.parametrize("name", FORGED)
def test_the_fast_check_rejects_a_forged_or_malformed_proof(name: str) -> None:
    prover = Prover()
    text = prover.proof("POST", ADDRESS)
    assert not is_verified(FORGED[name](text), header_of(text), prover.key.public_key())


@pytest.mark.parametrize("further", [{"kid": "a"}, {"alg": "ES384"}, {"crit": ["b64"]}])
def test_the_fast_check_leaves_a_proof_with_an_unusual_header_to_the_library(further: dict[str, Any]) -> None:
    prover = Prover()
    text = prover.proof("POST", ADDRESS)
    assert not is_verified(text, header_of(text) | further, prover.key.public_key())


def test_the_signature_of_another_key_is_refused() -> None:
    text = Prover().proof("POST", ADDRESS)
    assert not is_verified(text, header_of(text), new_key().public_key())
