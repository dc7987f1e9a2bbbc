"""Whether a tenant has switched a message on or off."""

from __future__ import annotations

from identity.messages.catalogue import Kind
from identity.models import MessageTemplate


def is_switched_on(tenant_id: str, kind: Kind) -> bool:
    """Tell whether messages of this kind are sent.

    The row without a language decides; if there is none, the default of the kind decides.
    """
    if not kind.is_sent:
        return False
    if kind.is_always_sent:
        return True
    rows = MessageTemplate.objects.of(tenant_id).filter(name=kind.name, channel=kind.channel, language="")
    chosen = rows.values_list("is_enabled", flat=True).first()
    return not kind.is_off_at_first if chosen is None else chosen
