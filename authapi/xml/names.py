"""Names of the XML vocabularies that the service supports. Pure data."""

from __future__ import annotations

SAMLP = "urn:oasis:names:tc:SAML:2.0:protocol"
SAML = "urn:oasis:names:tc:SAML:2.0:assertion"
METADATA = "urn:oasis:names:tc:SAML:2.0:metadata"
SAML11 = "urn:oasis:names:tc:SAML:1.0:assertion"
SAML11P = "urn:oasis:names:tc:SAML:1.0:protocol"
DS = "http://www.w3.org/2000/09/xmldsig#"
XENC = "http://www.w3.org/2001/04/xmlenc#"
XENC11 = "http://www.w3.org/2009/xmlenc11#"
EXC_C14N = "http://www.w3.org/2001/10/xml-exc-c14n#"
# WS-Federation 1.2 and its base standards. Applications use the trust namespace of 2005/02.
WST = "http://schemas.xmlsoap.org/ws/2005/02/trust"
WST13 = "http://docs.oasis-open.org/ws-sx/ws-trust/200512"
WSP = "http://schemas.xmlsoap.org/ws/2004/09/policy"
WSA = "http://www.w3.org/2005/08/addressing"
FED = "http://docs.oasis-open.org/wsfed/federation/200706"
FED_AUTH = "http://docs.oasis-open.org/wsfed/authorization/200706"
WSSE = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd"
WSU = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd"
SOAP12 = "http://www.w3.org/2003/05/soap-envelope"
XS = "http://www.w3.org/2001/XMLSchema"
XSI = "http://www.w3.org/2001/XMLSchema-instance"
XML = "http://www.w3.org/XML/1998/namespace"

# Prefixes of the namespaces in documents that this service writes. Some service providers accept only the usual prefixes.
PREFIXES = {
    "samlp": SAMLP,
    "saml": SAML,
    "md": METADATA,
    "ds": DS,
    "xenc": XENC,
    "saml1": SAML11,
    "t": WST,
    "wsp": WSP,
    "wsa": WSA,
    "fed": FED,
    "auth": FED_AUTH,
    "wsse": WSSE,
    "wsu": WSU,
    "soap": SOAP12,
    "xs": XS,
    "xsi": XSI,
}

# Attributes that contain the id of an element in the vocabularies above; the reference of a signature names this id. An id must be unique
# across all of these attributes.
ID_ATTRIBUTES = ("ID", "Id", "id", "AssertionID", "ResponseID", "RequestID", f"{{{XML}}}id")


def qualified(namespace: str, name: str) -> str:
    """Return the name as element trees write it: `{namespace}name`."""
    return f"{{{namespace}}}{name}"
