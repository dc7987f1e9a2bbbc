"""Guides of the strategies with which users of a company log in at its own provider. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from identity.options.further_fields import OPENID_FURTHER, SAML_FURTHER
from identity.options.guide_fields import Guide, OptionField

_SHOWN_VALUES = "After you save the connection, the page “Test connection” shows the values to enter at the provider."
_SHOWN_METADATA = (
    "After you save the connection, the page “Test connection” shows the metadata of this service and the values to enter at the provider."
)
# The fields that `authapi.upstream` fills.
TEMPLATE_FIELDS = ("name", "nickname", "given_name", "family_name", "picture", "email")
ATTRIBUTE_FIELDS = (
    *("user_id", "email", "email_verified", "name", "nickname", "given_name", "family_name", "picture"),
    *("phone_number", "phone_verified"),
)
_ATTRIBUTES = OptionField(
    "fieldsMap",
    "Attribute map",
    "One row per attribute. If several rows fill the same field, the first attribute that has a value is used. Well-known attributes, "
    "such as displayName, need no row.",
    kind="claims",
    columns=("Attribute", "Field of the profile"),
    profile_fields=ATTRIBUTE_FIELDS,
    is_repeatable=True,
)
_TRUST = OptionField(
    "should_trust_email_verified_connection",
    "Email addresses of this provider",
    kind="choice",
    choices=(
        ("", "Verified if the provider says so"),
        ("always_set_emails_as_verified", "Always verified"),
        ("never_set_emails_as_verified", "Never verified"),
    ),
)
_DOMAINS = OptionField(
    "domain_aliases",
    "Domains of email addresses",
    "One domain per line. Users who enter an email address of one of these domains log in at this provider.",
    kind="lines",
)
MAPPED = OptionField(
    "attribute_map.attributes",
    "Attribute map",
    "Each row fills a field of the profile with a claim of the provider, such as ${context.tokenset.nick} for nickname. A template can "
    "contain several claims and other text: ${context.tokenset.first} ${context.tokenset.last}. Choose “Standard claims and map” above.",
    kind="claims",
    columns=("Template", "Field of the profile"),
    profile_fields=TEMPLATE_FIELDS,
)
MODE = OptionField(
    "attribute_map.mapping_mode",
    "Source of the profile",
    "The standard claims are those of OpenID Connect. Values of the attribute map take precedence.",
    kind="choice",
    choices=(("", "Standard claims"), ("use_map", "Standard claims and map")),
)
_OPENID = (
    OptionField("client_id", "Client id", is_required=True),
    OptionField("client_secret", "Client secret", kind="secret"),
    OptionField("scope", "Scopes", "Requested from the provider, separated by spaces. Default: openid profile email.", kind="words"),
    OptionField(
        "token_endpoint_auth_method",
        "How the service sends the client secret",
        kind="choice",
        choices=(("", "In the Authorization header"), ("client_secret_post", "In the body of the request")),
    ),
    MODE,
    MAPPED,
    _DOMAINS,
    *OPENID_FURTHER,
)
_SAML = (
    OptionField(
        "metadataUrl",
        "Address of the metadata",
        "The service fetches the metadata when the page “Test connection” or a login first needs it, and then at least once a day. Values "
        "in the fields below replace those of the metadata.",
        kind="address",
    ),
    OptionField("metadataXml", "Metadata document", "The XML text, if the provider does not publish it at an address.", kind="area"),
    OptionField(
        "signInEndpoint",
        "Sign-in address",
        "The address at which the provider receives login requests. Required without metadata.",
        kind="address",
    ),
    OptionField("signOutEndpoint", "Sign-out address", "The address at which the provider receives logout requests.", kind="address"),
    OptionField(
        "signingCert",
        "Certificate of the provider",
        "In PEM format. Verifies the signatures of the provider. Required if there is no metadata.",
        kind="area",
    ),
    OptionField(
        "user_id_attribute",
        "Attribute that identifies the user",
        "The user id contains the value of this attribute. If this setting is empty, the NameID is used.",
    ),
    _ATTRIBUTES,
    OptionField(
        "signSAMLRequest",
        "Sign requests",
        "The provider verifies the signature with the certificate in the metadata of this service.",
        kind="switch",
    ),
    OptionField(
        "protocolBinding",
        "Binding of login requests",
        kind="choice",
        choices=(
            ("", "Not set: the binding in the metadata"),
            ("urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect", "HTTP-Redirect"),
            ("urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST", "HTTP-POST"),
        ),
    ),
    _TRUST,
    _DOMAINS,
    *SAML_FURTHER,
)
ENTERPRISE_GUIDES: Mapping[str, Guide] = {
    "oidc": Guide(
        "OpenID Connect",
        (
            OptionField(
                "issuer",
                "Issuer",
                "Address of the provider, such as https://login.example.com. The service reads the discovery document there.",
                kind="address",
            ),
            OptionField(
                "discovery_url",
                "Address of the discovery document",
                "Required only if the document is not at the usual address below the issuer.",
                kind="address",
            ),
            *_OPENID,
        ),
        ("Register a web application at the provider, and enter the callback address as its redirect URI.",),
    ),
    "okta": Guide(
        "Okta",
        (OptionField("domain", "Okta domain", "Such as example.okta.com.", is_required=True), *_OPENID),
        (
            "Choose “Applications”, then “Create App Integration”, “OIDC” and “Web Application”.",
            "Enter the callback address under “Sign-in redirect URIs”.",
        ),
    ),
    "samlp": Guide("SAML", _SAML, (_SHOWN_METADATA,), callback="named"),
    "pingfederate": Guide(
        "PingFederate",
        (OptionField("pingFederateBaseUrl", "Address of PingFederate", kind="address", is_required=True), *_SAML),
        (_SHOWN_METADATA,),
        callback="named",
    ),
    "adfs": Guide(
        "Active Directory Federation Services",
        (
            OptionField("adfs_server", "Server", "Host of the server, such as adfs.example.com, or the address of its metadata."),
            OptionField("fedMetadataXml", "Federation metadata", "The XML text, if this service cannot reach the server.", kind="area"),
            OptionField(
                "signInEndpoint",
                "Sign-in address",
                "The address at which the server receives login requests. Required without metadata.",
                kind="address",
            ),
            OptionField(
                "user_id_attribute",
                "Claim that identifies the user",
                "The user id contains the value of this claim. If this setting is empty, the NameID is used.",
            ),
            _ATTRIBUTES,
            _TRUST,
            _DOMAINS,
        ),
        (_SHOWN_VALUES, "Add a relying party trust with these values, and issue the claims for the email address and the name."),
        callback="named",
    ),
}
