"""RSA keys for tests without the cost of generation. Each key is the product of two of 256 primes. Each pair gives a different key."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from itertools import combinations, cycle
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import rsa

from authapi.tokens import key_pairs

_EXPONENT = 65537
generated_private_key = key_pairs.generate_private_key


def composed_private_key() -> rsa.RSAPrivateKey:
    """Return one of 32,640 keys of 2,048 bits. A process gets each key once, in a random order."""
    p, q = next(_pairs())
    d = rsa.rsa_recover_private_exponent(_EXPONENT, p, q)
    public = rsa.RSAPublicNumbers(_EXPONENT, p * q)
    numbers = rsa.RSAPrivateNumbers(p, q, d, rsa.rsa_crt_dmp1(d, p), rsa.rsa_crt_dmq1(d, q), rsa.rsa_crt_iqmp(p, q), public)
    return numbers.private_key(unsafe_skip_rsa_key_validation=True)


def replace_generation() -> None:
    """Make every tenant of this process use composed keys."""
    key_pairs.generate_private_key = composed_private_key


@cache
def _pairs() -> Iterator[tuple[int, int]]:
    primes = [int(line, 16) for line in Path(__file__).with_name("primes.txt").read_text().split()]
    pairs = list(combinations(primes, 2))
    # A separate random generator, because some tests seed the shared generator.
    random.SystemRandom().shuffle(pairs)
    return cycle(pairs)
