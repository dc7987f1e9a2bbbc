"""Which algorithms of XML signatures and encryption are accepted and made. Pure data.

SHA-1 counts only where a caller opts in for one partner. HMAC, DSA, RSA PKCS#1 v1.5 key transport and everything unlisted never does.
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

# Signature method -> hash that is signed.
SIGNATURE_METHODS: dict[str, hashes.HashAlgorithm] = {
    RSA_SHA256: hashes.SHA256(),
    RSA_SHA384: hashes.SHA384(),
    RSA_SHA512: hashes.SHA512(),
    ECDSA_SHA256: hashes.SHA256(),
    ECDSA_SHA384: hashes.SHA384(),
    ECDSA_SHA512: hashes.SHA512(),
}
DIGEST_METHODS = frozenset({SHA256, SHA384, SHA512})
# Broken for signatures since 2017. Some partners have nothing else.
OLD_SIGNATURE_METHODS: dict[str, hashes.HashAlgorithm] = {RSA_SHA1: hashes.SHA1()}  # noqa: S303  # nosec B303  # by opt-in for one partner
OLD_DIGEST_METHODS = frozenset({SHA1})

# Names of the settings of clients and connections.
SIGNATURE_NAMES = {"rsa-sha1": RSA_SHA1, "rsa-sha256": RSA_SHA256, "rsa-sha384": RSA_SHA384, "rsa-sha512": RSA_SHA512}
DIGEST_NAMES = {"sha1": SHA1, "sha256": SHA256, "sha384": SHA384, "sha512": SHA512}

ENVELOPED = "http://www.w3.org/2000/09/xmldsig#enveloped-signature"
CANONICAL_FORMS = frozenset({EXC_C14N, f"{EXC_C14N}WithComments"})
# A smaller modulus has been within reach of attackers for years.
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
# `rsa-1_5` is left out: its padding tells apart what decrypts, and the plain text follows from many tries.
RSA_OAEP_MGF1P = f"{XENC}rsa-oaep-mgf1p"
RSA_OAEP = f"{XENC11}rsa-oaep"
KEY_TRANSPORTS = frozenset({RSA_OAEP_MGF1P, RSA_OAEP})
