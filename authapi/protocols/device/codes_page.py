"""`/activate/code`: a page that a device shows when it can display web pages: the code in large characters, and a QR code for a phone.

It shows the code that is in its address and looks nothing up, so it does not tell which codes exist.
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
    """Return the address that has the code in it already (RFC 8628, 3.3.1)."""
    return f"{issuer.rstrip('/')}{PATH}?{urlencode({PARAMETER: user_code})}"


@tenant_page("activate_code", methods=("GET",))
def code_page(request: HttpRequest, host: HostMatch) -> HttpResponse:
    """Show a code for people to type or to scan; without one that could be ours, lead to the page where codes are typed."""
    shown = sign_in_settings(host.tenant_id).user_codes.shown(request.GET.get(PARAMETER, ""))
    if not shown:
        return see_other(request, PATH)
    address = f"{host.issuer.rstrip('/')}{PATH}"
    context = {"user_code": shown, "address": address, "picture": qr_picture(complete_address(host.issuer, shown))}
    return hosted_page(request, host, "device_code", context)
