"""The accepted and the produced algorithms of XML signatures and encryption. Pure data.

SHA-1 is accepted only if a caller opts in for one partner. HMAC, DSA, RSA PKCS#1 v1.5 key transport and unlisted algorithms are never
accepted.
"""

from __future__ import annotations

from cryptography.hazmat.primitives import hashes

from authapi.xml.names import EXC_C14N, XENC, XENC11

RSA_SHA1 = "http://www.w3.org/2000/09/xmldsig#rsa-sha1"
RSA_SHA256 = "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256"
RSA_SHA384 = "http://www.w3.org/2001/04/xmldsig-more#rsa-sha384"
RSA_SHA512 = "http://www.w3.org/2001/04/xmldsig-more#rsa-sha512"
ECDSA_SHA256 = "http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha256"
ECDSA_SHA384 = "http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha384"
ECDSA_SHA512 = "http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha512"

SHA1 = "http://www.w3.org/2000/09/xmldsig#sha1"
SHA256 = "http://www.w3.org/2001/04/xmlenc#sha256"
SHA384 = "http://www.w3.org/2001/04/xmldsig-more#sha384"
SHA512 = "http://www.w3.org/2001/04/xmlenc#sha512"

# Each signature method with its hash.
SIGNATURE_METHODS: dict[str, hashes.HashAlgorithm] = {
    RSA_SHA256: hashes.SHA256(),
    RSA_SHA384: hashes.SHA384(),
    RSA_SHA512: hashes.SHA512(),
    ECDSA_SHA256: hashes.SHA256(),
    ECDSA_SHA384: hashes.SHA384(),
    ECDSA_SHA512: hashes.SHA512(),
}
DIGEST_METHODS = frozenset({SHA256, SHA384, SHA512})
# SHA-1 signatures have been broken since 2017. Some partners support nothing else.
OLD_SIGNATURE_METHODS: dict[str, hashes.HashAlgorithm] = {RSA_SHA1: hashes.SHA1()}  # noqa: S303  # nosec B303  # by opt-in for one partner
OLD_DIGEST_METHODS = frozenset({SHA1})

# The names of these signature methods in the settings of clients and connections.
SIGNATURE_NAMES = {"rsa-sha1": RSA_SHA1, "rsa-sha256": RSA_SHA256, "rsa-sha384": RSA_SHA384, "rsa-sha512": RSA_SHA512}
DIGEST_NAMES = {"sha1": SHA1, "sha256": SHA256, "sha384": SHA384, "sha512": SHA512}

ENVELOPED = "http://www.w3.org/2000/09/xmldsig#enveloped-signature"
CANONICAL_FORMS = frozenset({EXC_C14N, f"{EXC_C14N}WithComments"})
# The smallest accepted modulus. Attackers have been able to factor smaller moduli for years.
MIN_RSA_BITS = 1024

AES128_CBC = f"{XENC}aes128-cbc"
AES192_CBC = f"{XENC}aes192-cbc"
AES256_CBC = f"{XENC}aes256-cbc"
AES128_GCM = f"{XENC11}aes128-gcm"
AES192_GCM = f"{XENC11}aes192-gcm"
AES256_GCM = f"{XENC11}aes256-gcm"
CONTENT_ENCRYPTIONS = frozenset({AES128_CBC, AES192_CBC, AES256_CBC, AES128_GCM, AES192_GCM, AES256_GCM})
CONTENT_ENCRYPTION_NAMES = {
    "aes128-cbc": AES128_CBC,
    "aes256-cbc": AES256_CBC,
    "aes128-gcm": AES128_GCM,
    "aes256-gcm": AES256_GCM,
}
# `rsa-1_5` is left out: errors reveal whether its padding is valid, and an attacker can find the plain text with many such tries.
RSA_OAEP_MGF1P = f"{XENC}rsa-oaep-mgf1p"
RSA_OAEP = f"{XENC11}rsa-oaep"
KEY_TRANSPORTS = frozenset({RSA_OAEP_MGF1P, RSA_OAEP})
