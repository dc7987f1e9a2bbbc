"""User codes (RFC 8628, 6.1): what a person reads on a device and types into a browser. No two characters look alike.

People type them in any case, with any separators. Rows keep a keyed digest, since so few characters are guessed from a plain one.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from foundation.secrets import vault

# Consonants without Y: no digits that look like letters, and no words.
CHARSETS = {"base20": "BCDFGHJKLMNPQRSTVWXZ", "digits": "0123456789"}
PLACEHOLDER = "*"
_SEPARATORS = "- "
LONGEST_MASK = 20
# About 34 and 30 random bits. RFC 8628, 5.1 counts on the bits, and on the limits of guesses.
FEWEST_CHARACTERS = {"base20": 8, "digits": 9}
MASKS = {"base20": "****-****", "digits": "***-***-***"}
_LONGEST_TYPED = 64


@dataclass(frozen=True)
class UserCodeForm:
    """How codes of a tenant look: each asterisk of the mask stands for one character of the set."""

    charset: str = "base20"
    mask: str = "****-****"

    def new_code(self) -> str:
        """Return a random code as it is shown."""
        return "".join(secrets.choice(CHARSETS[self.charset]) if place == PLACEHOLDER else place for place in self.mask)

    def shown(self, typed: str) -> str:
        """Return what was typed as devices show it, empty for what cannot be a code of this form."""
        characters = plain(typed)
        if len(characters) != self.mask.count(PLACEHOLDER) or not set(characters) <= set(CHARSETS[self.charset]):
            return ""
        rest = iter(characters)
        return "".join(next(rest) if place == PLACEHOLDER else place for place in self.mask)


def mask_problem(charset: str, mask: str) -> str:
    """Return what is wrong with a mask, empty for nothing."""
    fewest = FEWEST_CHARACTERS[charset]
    if len(mask) > LONGEST_MASK or not set(mask) <= {PLACEHOLDER, *_SEPARATORS}:
        return f"At most {LONGEST_MASK} characters: asterisks, hyphens and spaces."
    if mask.count(PLACEHOLDER) < fewest:
        return f"At least {fewest} asterisks: a shorter code of this character set is guessed too easily."
    return ""


def plain(typed: str) -> str:
    """Return the letters and digits of what was typed, in capitals."""
    return "".join(character for character in typed[:_LONGEST_TYPED].upper() if character.isascii() and character.isalnum())


def user_code_digest(tenant_id: str, code: str) -> str:
    """Return what a row keeps of a code."""
    return vault.digest(_said(tenant_id, code))


def user_code_digests(tenant_id: str, typed: str) -> list[str]:
    """Return what a row may keep of a code that was typed, under each key."""
    return vault.digests(_said(tenant_id, typed))


def _said(tenant_id: str, code: str) -> str:
    return f"user_code\x00{tenant_id}\x00{plain(code)}"
