"""The looks of a tenant in mails, for `foundation.hooks.tenant_looks`.

Mail programs load no style sheet of this service, so a mail itself contains these values.
"""

from __future__ import annotations

from authapi.looks.addresses import is_own_picture
from authapi.looks.colors import is_color, opaque, readable_on
from authapi.looks.contrast import readable_colors
from authapi.looks.current import Looks, looks_of
from authapi.looks.theme import color_at
from authapi.tenant_settings import sign_in_settings
from identity.hosts import default_address

_BUTTON, _LABEL = ("colors", "primary_button"), ("colors", "primary_button_label")


def mail_looks(tenant_id: str, organization_id: str = "") -> dict[str, str]:
    """Return the name, logo, colors and support contacts of a tenant, overridden by the logo and colors of an organization.

    The logo is an absolute URL, because a mail has no host. `on_primary_color` is a color for text that is readable on `primary_color`.
    """
    looks, settings = looks_of(tenant_id, organization_id or None), sign_in_settings(tenant_id)
    primary, label = _button(looks)
    return {
        "friendly_name": looks.name,
        "logo_url": f"{default_address(tenant_id)}{looks.logo}" if is_own_picture(looks.logo) else looks.logo,
        "primary_color": primary,
        "on_primary_color": label,
        "support_email": settings.support_email,
        "support_url": settings.support_url,
    }


def _button(looks: Looks) -> tuple[str, str]:
    """Return the background color of the main button and the text color of its label; both are empty if the tenant has set no color."""
    if looks.theme:
        return opaque(color_at(looks.theme, _BUTTON)), readable_colors(looks.theme)[_LABEL]
    if not is_color(looks.primary_color):
        return "", ""
    primary = opaque(looks.primary_color)
    return primary, readable_on(primary)
