"""Encrypted elements: encrypted for a partner, decrypted with our keys, or refused."""

from __future__ import annotations

import base64

import lxml.etree
import pytest
import xmlsec
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.ciphers import Cipher, modes
from cryptography.hazmat.primitives.ciphers.algorithms import AES

from authapi.xml import algorithms
from authapi.xml.building import element
from authapi.xml.encryption import decrypted, encrypted
from authapi.xml.failures import AlgorithmRefused, DecryptionFailed, XmlError
from authapi.xml.names import DS, SAML, XENC, qualified
from authapi.xml.parsing import Element, parse, serialized
from tests.authapi.xml.signed_messages import assertion, at, key, name_in, signed_assertion, trusted

HOLDER = qualified(SAML, "EncryptedAssertion")
DATA = qualified(XENC, "EncryptedData")
KEY = qualified(XENC, "EncryptedKey")


def holding(data: Element) -> Element:
    return parse(serialized(element(HOLDER, None, data)))


def test_xmlsec_and_lxml_work_in_one_process() -> None:
    """The wheels of xmlsec and lxml must be built for the same libxml2. Otherwise xmlsec fails at import or later."""
    assert xmlsec.__version__
    assert lxml.etree.LIBXML_VERSION
    for _ in range(50):
        made = holding(encrypted(signed_assertion(), certificate=trusted()))
        assert name_in(decrypted(made, [key()])) == "ada@example.test"


@pytest.mark.parametrize("algorithm", sorted(algorithms.CONTENT_ENCRYPTIONS))
def test_encrypted_data_can_be_decrypted_with_the_key_of_the_certificate(algorithm: str) -> None:
    made = holding(encrypted(assertion(), certificate=trusted(), algorithm=algorithm))
    assert b"ada@" not in serialized(made)
    assert serialized(decrypted(made, [key("second"), key()])) == serialized(assertion())


def test_an_assertion_cannot_be_decrypted_with_another_key() -> None:
    with pytest.raises(DecryptionFailed):
        decrypted(holding(encrypted(assertion(), certificate=trusted())), [key("second")])


def test_an_encrypted_key_next_to_the_data_is_found() -> None:
    made = holding(encrypted(assertion(), certificate=trusted()))
    info = at(made, f"{DATA}/{qualified(DS, 'KeyInfo')}")
    wrapped = at(info, KEY)
    made[0].remove(info)
    made.append(wrapped)
    assert name_in(decrypted(made, [key()])) == "ada@example.test"


def test_a_key_at_an_external_url_is_not_fetched() -> None:
    made = holding(encrypted(assertion(), certificate=trusted()))
    info = at(made, f"{DATA}/{qualified(DS, 'KeyInfo')}")
    info.clear()
    info.append(element(qualified(DS, "RetrievalMethod"), {"URI": "http://127.0.0.1:1/key"}))
    with pytest.raises(DecryptionFailed):
        decrypted(made, [key()])


def test_data_at_an_external_url_is_not_fetched() -> None:
    made = holding(encrypted(assertion(), certificate=trusted()))
    cipher = at(made, f"{DATA}/{qualified(XENC, 'CipherData')}")
    cipher.clear()
    cipher.append(element(qualified(XENC, "CipherReference"), {"URI": "file:///etc/passwd"}))
    with pytest.raises(DecryptionFailed):
        decrypted(made, [key()])


@pytest.mark.parametrize("name", ["http://www.w3.org/2001/04/xmlenc#rsa-1_5", "http://www.w3.org/2001/04/xmlenc#kw-aes128", ""])
def test_an_unsupported_key_transport_is_refused(name: str) -> None:
    made = holding(encrypted(assertion(), certificate=trusted()))
    next(made.iter(KEY))[0].set("Algorithm", name)
    with pytest.raises(AlgorithmRefused):
        decrypted(made, [key()])


@pytest.mark.parametrize("name", ["http://www.w3.org/2001/04/xmlenc#tripledes-cbc", ""])
def test_an_unsupported_cipher_is_refused(name: str) -> None:
    made = holding(encrypted(assertion(), certificate=trusted()))
    made[0][0].set("Algorithm", name)
    with pytest.raises(AlgorithmRefused):
        decrypted(made, [key()])


@pytest.mark.parametrize("algorithm", [algorithms.AES128_CBC, algorithms.AES256_GCM])
def test_every_decryption_failure_raises_the_same_error(algorithm: str) -> None:
    texts = set()
    for place in (0, 10, -6):
        made = holding(encrypted(assertion(), certificate=trusted(), algorithm=algorithm))
        value = at(made, f"{DATA}/{qualified(XENC, 'CipherData')}/{qualified(XENC, 'CipherValue')}")
        text = list((value.text or "").replace("\n", ""))
        text[place] = "A" if text[place] != "A" else "B"
        value.text = "".join(text)
        with pytest.raises(XmlError) as caught:
            decrypted(made, [key()])
        texts.add(str(caught.value))
    assert texts <= {str(DecryptionFailed())}


def test_the_decrypted_content_is_parsed_as_strictly_as_the_rest_of_the_document() -> None:
    made = holding(encrypted(parse(b"<a>" + b"<b>" * 30 + b"</b>" * 30 + b"</a>"), certificate=trusted()))
    assert decrypted(made, [key()]).tag == "a"
    assert decrypted(made, [key()]).getparent() is None


def _cbc(content_key: bytes) -> Cipher[modes.CBC]:
    return Cipher(AES(content_key), modes.CBC(bytes(16)))


def _wrapped(content_key: bytes) -> Element:
    public = key().public_key()
    opened_by_us = padding.OAEP(padding.MGF1(hashes.SHA1()), hashes.SHA1(), None)  # noqa: S303  # nosec B303  # as the standard has it
    return element(
        KEY,
        None,
        element(qualified(XENC, "EncryptionMethod"), {"Algorithm": algorithms.RSA_OAEP_MGF1P}),
        _cipher(public.encrypt(content_key, opened_by_us)),
    )


def _cipher(raw: bytes) -> Element:
    value = element(qualified(XENC, "CipherValue"), None, base64.b64encode(raw).decode())
    return element(qualified(XENC, "CipherData"), None, value)


def test_the_next_key_is_tried_after_a_key_that_yields_no_xml_or_wrong_padding() -> None:
    # A wrong key yields no XML, or it yields wrong padding. If one of these two cases got a faster answer, an attacker could measure
    # whether the padding is valid. From many such answers, the attacker could compute the plain text.
    plain = serialized(assertion())
    missing = 16 - len(plain) % 16
    padded = plain + bytes(missing - 1) + bytes([missing])
    right = bytes(16)
    encryptor = _cbc(right).encryptor()
    sealed = encryptor.update(padded) + encryptor.finalize()
    # This key produces valid padding by chance, but no valid text.
    wrong = next(made for made in (number.to_bytes(16) for number in range(1, 5000)) if _ends_well(made, sealed))
    data = element(
        DATA,
        None,
        element(qualified(XENC, "EncryptionMethod"), {"Algorithm": algorithms.AES128_CBC}),
        element(qualified(DS, "KeyInfo"), None, _wrapped(wrong), _wrapped(right)),
        _cipher(bytes(16) + sealed),
    )
    assert name_in(decrypted(holding(data), [key()])) == "ada@example.test"


def _ends_well(content_key: bytes, sealed: bytes) -> bool:
    decryptor = _cbc(content_key).decryptor()
    return 0 < (decryptor.update(sealed) + decryptor.finalize())[-1] <= 16
