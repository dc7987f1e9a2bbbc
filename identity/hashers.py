"""Django hasher for imported hashes: `check_password` verifies them and requests a rehash with the first hasher of `PASSWORD_HASHERS`."""

from __future__ import annotations

from typing import Any, NoReturn

from django.contrib.auth.hashers import BasePasswordHasher

from identity.imports import imported_passwords


class ImportedPasswordHasher(BasePasswordHasher):
    """Verifies hashes that `identity.imports.imported_passwords` stored. Never creates a hash.

    After a correct password, the first hasher creates a new hash.
    """

    algorithm = imported_passwords.PREFIX

    def verify(self, password: str, encoded: str) -> bool:
        return imported_passwords.verify(encoded, password)

    def encode(self, password: str, salt: str) -> NoReturn:
        raise NotImplementedError("This hasher only verifies hashes of other systems. It creates no hashes.")

    def decode(self, encoded: str) -> dict[str, Any]:
        return {"algorithm": self.algorithm, "hash": encoded}

    def must_update(self, encoded: str) -> bool:
        return True

    def safe_summary(self, encoded: str) -> dict[Any, Any]:
        return {"algorithm": self.algorithm}

    def harden_runtime(self, password: str, encoded: str) -> None:
        """Do nothing. Other hashers add here the work by which an old hash is cheaper than a new hash of the same hasher.

        This hasher creates no hashes, and each imported hash has its own cost. So there is no cost to compare with.
        """
