"""User codes (RFC 8628, 6.1): a user reads a code on a device and types the code into a browser.

Users may type lower case and any separators. Rows store a keyed digest, because an attacker could compute such a short code from a plain
digest by trying all codes.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from foundation.secrets import vault

# `base20` has consonants without Y: no character looks like another character, and codes form no words.
CHARSETS = {"base20": "BCDFGHJKLMNPQRSTVWXZ", "digits": "0123456789"}
PLACEHOLDER = "*"
_SEPARATORS = "- "
LONGEST_MASK = 20
# 8 letters have about 34 random bits, and 9 digits about 30 random bits. The security (RFC 8628, 5.1) depends on these bits and on the
# limits for guesses.
FEWEST_CHARACTERS = {"base20": 8, "digits": 9}
MASKS = {"base20": "****-****", "digits": "***-***-***"}
_LONGEST_TYPED = 64


@dataclass(frozen=True)
class UserCodeForm:
    """The format of a tenant's codes. Each asterisk of the mask is replaced by a character of the set."""

    charset: str = "base20"
    mask: str = "****-****"

    def new_code(self) -> str:
        """Return a random code with separators."""
        return "".join(secrets.choice(CHARSETS[self.charset]) if place == PLACEHOLDER else place for place in self.mask)

    def shown(self, typed: str) -> str:
        """Return a typed code as devices show it, with separators. Empty if the text cannot be a code of this format."""
        characters = plain(typed)
        if len(characters) != self.mask.count(PLACEHOLDER) or not set(characters) <= set(CHARSETS[self.charset]):
            return ""
        rest = iter(characters)
        return "".join(next(rest) if place == PLACEHOLDER else place for place in self.mask)


def mask_problem(charset: str, mask: str) -> str:
    """Return the error of a mask. Empty if the mask is valid."""
    fewest = FEWEST_CHARACTERS[charset]
    if len(mask) > LONGEST_MASK or not set(mask) <= {PLACEHOLDER, *_SEPARATORS}:
        return f"At most {LONGEST_MASK} characters: asterisks, hyphens and spaces."
    if mask.count(PLACEHOLDER) < fewest:
        return f"At least {fewest} asterisks: shorter codes with this character set are too easy to guess."
    return ""


def plain(typed: str) -> str:
    """Return the letters and digits of the first 64 characters of a typed text, in upper case."""
    return "".join(character for character in typed[:_LONGEST_TYPED].upper() if character.isascii() and character.isalnum())


def user_code_digest(tenant_id: str, code: str) -> str:
    """Return the stored digest of a code."""
    return vault.digest(_said(tenant_id, code))


def user_code_digests(tenant_id: str, typed: str) -> list[str]:
    """Return the possible digests of a typed code, one for each digest key of the service."""
    return vault.digests(_said(tenant_id, typed))


def _said(tenant_id: str, code: str) -> str:
    return f"user_code\x00{tenant_id}\x00{plain(code)}"
