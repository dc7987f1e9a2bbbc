"""Registers, replaces and deletes the public keys of devices on which users stay logged in."""

from __future__ import annotations

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from authapi.models import Client, DeviceKey
from foundation.database.transactions import unit_of_work
from identity.models import User
from identity.services.failures import Invalid, NotFound

_SHORTEST, _LONGEST = 2048, 8192


@unit_of_work
def register_device_key(*, tenant_id: str, user_id: str, client_id: str, device_name: str, device_id: str, public_key: str) -> DeviceKey:
    """Store the key of a device. The new key replaces an earlier key of the same device, user and client. Raises `NotFound`, `Invalid`."""
    user = User.objects.of(tenant_id).filter(user_id=user_id).first()
    client = Client.objects.of(tenant_id).filter(client_id=client_id, revoked_at__isnull=True).first()
    if user is None or client is None:
        raise NotFound("The user or the client does not exist.")
    _check(public_key)
    DeviceKey.objects.of(tenant_id).filter(user=user, client=client, device_id=device_id).delete()
    key = DeviceKey(tenant_id=tenant_id, user=user, client=client, device_name=device_name, device_id=device_id, public_key=public_key)
    key.save(force_insert=True)
    return key


def delete_device_key(*, tenant_id: str, wire_id: str) -> bool:
    """Delete a key, so that signatures of its device are no longer valid. Return whether the key existed."""
    count, _ = DeviceKey.objects.of(tenant_id).filter(wire_id=wire_id).delete()
    return count > 0


def _check(public_key: str) -> None:
    try:
        key = load_pem_public_key(public_key.encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise Invalid({"value": ["Expected an RSA public key in PEM."]}) from error
    if not isinstance(key, RSAPublicKey) or not _SHORTEST <= key.key_size <= _LONGEST:
        raise Invalid({"value": [f"Expected an RSA public key of {_SHORTEST} to {_LONGEST} bits."]})
