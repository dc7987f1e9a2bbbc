"""Names of the XML vocabularies that the service speaks. Pure data."""

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
XS = "http://www.w3.org/2001/XMLSchema"
XSI = "http://www.w3.org/2001/XMLSchema-instance"
XML = "http://www.w3.org/XML/1998/namespace"

# Prefixes of what we write. Some service providers match on the usual ones.
PREFIXES = {
    "samlp": SAMLP,
    "saml": SAML,
    "md": METADATA,
    "ds": DS,
    "xenc": XENC,
    "xs": XS,
    "xsi": XSI,
}

# Attributes that name an element for a reference, in the vocabularies above. Values are compared over all of them.
ID_ATTRIBUTES = ("ID", "Id", "id", "AssertionID", "ResponseID", "RequestID", f"{{{XML}}}id")


def qualified(namespace: str, name: str) -> str:
    """Return the name as trees spell it: `{namespace}name`."""
    return f"{{{namespace}}}{name}"
