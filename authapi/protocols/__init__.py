"""The protocols with which clients request logins. Each protocol is an entry of the table in `authapi.login.protocol`."""

from authapi.protocols.account.entry import ACCOUNT
from authapi.protocols.ciba.entry import CIBA
from authapi.protocols.device.entry import DEVICE
from authapi.protocols.oauth.entry import OAUTH
from authapi.protocols.saml.entry import SAML
from authapi.protocols.wsfed.entry import WSFED

PROTOCOLS = (OAUTH, SAML, WSFED, DEVICE, CIBA, ACCOUNT)
