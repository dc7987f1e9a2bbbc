"""`/activate/code`: the page for a device that can display web pages. It shows the code, and a QR code for a phone.

The page takes the code from its own URL and does not search the database, so the page does not reveal which codes exist.
"""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse

from authapi.login.browser import see_other
from authapi.pages.hosted_page import hosted_page
from authapi.pages.tenant_page import tenant_page
from authapi.protocols.device.entry import PATH
from authapi.tenant_settings import sign_in_settings
from foundation.qr_pictures import qr_picture
from identity.hosts import HostMatch

CODE_PATH = f"{PATH}/code"
PARAMETER = "user_code"


def complete_address(issuer: str, user_code: str) -> str:
    """Return the URL that contains the code (RFC 8628, 3.3.1)."""
    return f"{issuer.rstrip('/')}{PATH}?{urlencode({PARAMETER: user_code})}"


@tenant_page("activate_code", methods=("GET",))
def code_page(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Show a code that the user types or scans. If the code is malformed, redirect to the page on which users type codes."""
    shown = sign_in_settings(host.tenant_id).user_codes.shown(request.GET.get(PARAMETER, ""))
    if not shown:
        return see_other(request, PATH)
    address = f"{host.issuer.rstrip('/')}{PATH}"
    context = {"user_code": shown, "address": address, "picture": qr_picture(complete_address(host.issuer, shown))}
    return hosted_page(request, host, "device_code", context)
