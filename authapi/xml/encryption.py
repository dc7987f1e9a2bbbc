"""Encrypts and decrypts elements with the C library `xmlsec`, which gets only bytes and a template that this module writes.

To decrypt, this module copies two things from the foreign document into the template: cipher text, and names of algorithms that
`algorithms` lists. It copies no reference, no retrieval method, and no type that would make the C library parse the decrypted data.
`parsing` parses the result.
"""

from __future__ import annotations

from collections.abc import Sequence

import xmlsec
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from authapi.xml import algorithms
from authapi.xml.building import element as new_element
from authapi.xml.certificates import base64_of
from authapi.xml.failures import AlgorithmRefused, DecryptionFailed, XmlError
from authapi.xml.names import DS, XENC, XENC11, qualified
from authapi.xml.parsing import Element, child, parse, serialized, text_of

_TYPE_ELEMENT = f"{XENC}Element"
_DATA = qualified(XENC, "EncryptedData")
_KEY = qualified(XENC, "EncryptedKey")
_METHOD = qualified(XENC, "EncryptionMethod")
_CIPHER = qualified(XENC, "CipherData")
_VALUE = qualified(XENC, "CipherValue")
_KEY_INFO = qualified(DS, "KeyInfo")
_KEY_BITS = {
    algorithms.AES128_CBC: 128,
    algorithms.AES192_CBC: 192,
    algorithms.AES256_CBC: 256,
    algorithms.AES128_GCM: 128,
    algorithms.AES192_GCM: 192,
    algorithms.AES256_GCM: 256,
}


def encrypted(element: Element, *, certificate: x509.Certificate, algorithm: str = algorithms.AES256_GCM) -> Element:
    """Return an `xenc:EncryptedData` of the element for the key of the certificate. RSA-OAEP wraps the AES key."""
    if algorithm not in algorithms.CONTENT_ENCRYPTIONS:
        raise AlgorithmRefused
    public = certificate.public_key()
    if not isinstance(public, rsa.RSAPublicKey):
        raise AlgorithmRefused("Encryption needs a certificate with an RSA key.")
    manager = xmlsec.KeysManager()
    pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    manager.add_key(xmlsec.Key.from_memory(pem, xmlsec.KeyFormat.PEM))
    context = xmlsec.EncryptionContext(manager)
    context.key = xmlsec.Key.generate(xmlsec.KeyData.AES, _KEY_BITS[algorithm], xmlsec.KeyDataType.SESSION)
    skeleton = _skeleton(algorithm, new_element(_METHOD, {"Algorithm": algorithms.RSA_OAEP_MGF1P}), "", "")
    filled = context.encrypt_binary(skeleton, serialized(element))
    made = parse(serialized(filled))
    made.set("Type", _TYPE_ELEMENT)
    # The recipient selects its key by the certificate.
    for wrapped in made.iterfind(f"{_KEY_INFO}/{_KEY}"):
        wrapped.insert(1, _key_info_of(certificate))
    return made


def decrypted(holder: Element, private_keys: Sequence[rsa.RSAPrivateKey]) -> Element:
    """Return the decrypted element of `holder`, which has one `EncryptedData` with its `EncryptedKey` inside or beside it.

    Proves nothing about the origin: verify the result, or the message around it. Every failed decryption raises the same
    `DecryptionFailed` and takes the same time. Unlisted algorithms raise `AlgorithmRefused`.
    """
    data = child(holder, _DATA)
    if data is None:
        raise DecryptionFailed("There is no EncryptedData.")
    algorithm = _one_of(_method(data), algorithms.CONTENT_ENCRYPTIONS)
    found: list[Element] = []
    for wrapped in _keys(holder, data):
        method = _transport_method(wrapped)
        skeleton = serialized(_skeleton(algorithm, method, _cipher_value(wrapped), _cipher_value(data)))
        for private_key in private_keys:
            # Try each private key on each wrapped key, even after a success. Otherwise the time would reveal whether the padding of CBC is
            # valid, and an attacker could find the plain text with many such tries.
            found.extend(_parsed(_opened(skeleton, private_key)))
    if not found:
        raise DecryptionFailed
    return found[0]


def _parsed(opened: bytes | None) -> list[Element]:
    """Return the element in a list; an empty list for a wrong key and for invalid XML. A difference between these two failures would help
    an attacker.
    """
    try:
        return [parse(opened)] if opened is not None else []
    except XmlError:
        return []


def _opened(skeleton: bytes, private_key: rsa.RSAPrivateKey) -> bytes | None:
    manager = xmlsec.KeysManager()
    pem = private_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    manager.add_key(xmlsec.Key.from_memory(pem, xmlsec.KeyFormat.PEM))
    try:
        opened = xmlsec.EncryptionContext(manager).decrypt(parse(skeleton))
    except xmlsec.Error:
        return None
    return opened if isinstance(opened, bytes) else None


def _keys(holder: Element, data: Element) -> list[Element]:
    key_info = child(data, _KEY_INFO)
    inside = list(key_info.iterchildren(_KEY)) if key_info is not None else []
    # SAML core, 2.3.4: the keys may be beside the data. At most a few recipients are supported.
    return [*inside, *holder.iterchildren(_KEY)][:8]


def _skeleton(algorithm: str, method: Element, key_value: str, data_value: str) -> Element:
    wrapped = new_element(_KEY, None, method, new_element(_CIPHER, None, new_element(_VALUE, None, key_value)))
    return new_element(
        _DATA,
        None,
        new_element(_METHOD, {"Algorithm": algorithm}),
        new_element(_KEY_INFO, None, wrapped),
        new_element(_CIPHER, None, new_element(_VALUE, None, data_value)),
    )


def _transport_method(wrapped: Element) -> Element:
    """Build the method of the key transport anew, with only a digest and a mask function that `algorithms` lists."""
    found = _method(wrapped)
    made = new_element(_METHOD, {"Algorithm": _one_of(found, algorithms.KEY_TRANSPORTS)})
    digest = child(found, qualified(DS, "DigestMethod"))
    if digest is not None:
        made.append(new_element(qualified(DS, "DigestMethod"), {"Algorithm": _one_of(digest, _OAEP_DIGESTS)}))
    mask = child(found, qualified(XENC11, "MGF"))
    if mask is not None:
        made.append(new_element(qualified(XENC11, "MGF"), {"Algorithm": _one_of(mask, _MASKS)}))
    return made


_OAEP_DIGESTS = frozenset({algorithms.SHA1, algorithms.SHA256, algorithms.SHA384, algorithms.SHA512})
_MASKS = frozenset(f"{XENC11}mgf1{name}" for name in ("sha1", "sha224", "sha256", "sha384", "sha512"))


def _method(element: Element) -> Element:
    method = child(element, _METHOD)
    if method is None:
        raise AlgorithmRefused("The encrypted element names no algorithm.")
    return method


def _one_of(element: Element, allowed: frozenset[str]) -> str:
    name = element.get("Algorithm")
    if name not in allowed:
        raise AlgorithmRefused("The element is encrypted with an algorithm that is not allowed.")
    return str(name)


def _cipher_value(element: Element) -> str:
    cipher = child(element, _CIPHER)
    value = child(cipher, _VALUE) if cipher is not None else None
    if value is None:
        # The data of a CipherReference would have to be fetched from a URL.
        raise DecryptionFailed("The encrypted element does not contain its data.")
    return "".join(text_of(value).split())


def _key_info_of(certificate: x509.Certificate) -> Element:
    text = new_element(qualified(DS, "X509Certificate"), None, base64_of(certificate))
    return new_element(_KEY_INFO, None, new_element(qualified(DS, "X509Data"), None, text))
