"""The client's DPoP proofs: valid according to the standard, with the service's last nonce, and with a key from a file."""

from __future__ import annotations

import hashlib
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from pathlib import Path
from typing import Any

import pytest
from joserfc import jws
from joserfc.jwk import ECKey

from events.client.failures import NoToken
from events.client.proving import Prover, new_prover, prover_of


def read(proof: str) -> tuple[dict[str, Any], dict[str, Any]]:
    header = json.loads(urlsafe_b64decode(proof.split(".")[0] + "=="))
    content = jws.deserialize_compact(proof, ECKey.import_key(header["jwk"]), algorithms=["ES256"])
    return header, json.loads(content.payload)


def test_a_proof_is_valid_for_one_request_and_contains_no_private_key() -> None:
    prover = new_prover()
    header, claims = read(prover.proof("GET", "https://a.example.test/api/v2/events?from=1#x", token="the-token"))
    assert (header["typ"], set(header["jwk"])) == ("dpop+jwt", {"kty", "crv", "x", "y"})
    assert (claims["htm"], claims["htu"]) == ("GET", "https://a.example.test/api/v2/events")
    assert claims["ath"] == urlsafe_b64encode(hashlib.sha256(b"the-token").digest()).decode().rstrip("=")
    assert read(prover.proof("GET", "https://a.example.test/"))[1]["jti"] != claims["jti"]


def test_a_nonce_is_stored_and_a_request_is_repeated_if_the_refusal_has_a_new_nonce() -> None:
    prover = new_prover()
    assert prover.has_learned(401, "first")
    assert not prover.has_learned(401, "first"), "a repeated nonce must not cause an endless loop"
    assert not prover.has_learned(401, "")
    assert not prover.has_learned(200, "second")
    assert read(prover.proof("GET", "https://a.example.test/"))[1]["nonce"] == "second"


def test_a_prover_reads_its_key_from_a_file(tmp_path: Path) -> None:
    key = ECKey.generate_key("P-256")
    pem, jwk = tmp_path / "key.pem", tmp_path / "key.json"
    pem.write_bytes(key.as_pem(private=True))
    jwk.write_text(json.dumps(key.as_dict(private=True)))
    shown = [read(prover_of(file).proof("GET", "https://a.example.test/"))[0]["jwk"] for file in (pem, jwk)]
    assert shown[0] == shown[1] == read(Prover(key).proof("GET", "https://a.example.test/"))[0]["jwk"]


def test_an_unusable_key_file_is_refused_without_showing_its_content(tmp_path: Path) -> None:
    file = tmp_path / "key"
    wrong = ["", "secret-text", "{}", '{"kty":', ECKey.generate_key("P-384").as_pem(private=True).decode()]
    wrong.append(ECKey.generate_key("P-256").as_pem(private=False).decode())
    for content in wrong:
        file.write_text(content)
        with pytest.raises(NoToken) as refused:
            prover_of(file)
        assert "secret-text" not in str(refused.value)
    with pytest.raises(NoToken, match="cannot be read"):
        prover_of(tmp_path / "nothing")
