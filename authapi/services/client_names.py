"""The names by which other applications know a client: the values that can be the audience of a token for this client."""

from __future__ import annotations

from django.db.models import Q

from authapi.models import Client

_REALM_PREFIX = "urn:"


def is_of_another(client: Client, name: str) -> bool:
    """Tell whether a name belongs to another client of the tenant.

    The names of a client are its aliases, the audiences that its add-ons set, and the realm `urn:<client id>`. If a client
    could request a token whose audience is a name of another client, the requesting client could present the token to the other client.
    """
    if name in (client.settings.get("client_aliases") or ()):
        # An alias belongs to one client only.
        return False
    others = Client.objects.of(client.tenant_id).filter(revoked_at=None).exclude(pk=client.pk)
    is_named = Q(settings__client_aliases__contains=[name])
    is_named |= Q(settings__addons__samlp__audience=name) | Q(settings__addons__wsfed__audience=name)
    if name.startswith(_REALM_PREFIX):
        is_named |= Q(client_id=name.removeprefix(_REALM_PREFIX)[:64])
    return others.filter(is_named).exists()
