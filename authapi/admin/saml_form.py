"""The form of the SAML add-on. It checks its values as the management interface checks a request body, so that both have the same rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django import forms

from authapi.api.addon_bodies import SamlAddon
from authapi.protocols.saml.names import (
    EMAIL_NAME,
    PERSISTENT_NAME,
    TRANSIENT_NAME,
    UNSPECIFIED_CLASS,
    UNSPECIFIED_NAME,
)
from authapi.protocols.saml.settings import DEFAULT_LIFETIME, DEFAULT_MAPPINGS, DEFAULT_PROBES
from authapi.xml.bindings import HTTP_POST, HTTP_REDIRECT
from foundation.admin.body_errors import sentence_of
from foundation.admin.line_fields import LinesField
from foundation.admin.shown_values import ShowsValues

_FORMATS = (
    (UNSPECIFIED_NAME, "Unspecified"),
    (EMAIL_NAME, "Email address"),
    (PERSISTENT_NAME, "Persistent"),
    (TRANSIENT_NAME, "Transient"),
)
_SIGNED = (("assertion", "The assertion"), ("response", "The response"), ("both", "Both"))
_SIGNATURES = (
    ("rsa-sha256", "RSA with SHA-256"),
    ("rsa-sha384", "RSA with SHA-384"),
    ("rsa-sha512", "RSA with SHA-512"),
    ("rsa-sha1", "RSA with SHA-1: for legacy applications only"),
)
_DIGESTS = (("sha256", "SHA-256"), ("sha384", "SHA-384"), ("sha512", "SHA-512"), ("sha1", "SHA-1: for legacy applications only"))
_CIPHERS = (
    ("aes256-gcm", "AES-256 GCM"),
    ("aes128-gcm", "AES-128 GCM"),
    ("aes256-cbc", "AES-256 CBC: for legacy applications only"),
    ("aes128-cbc", "AES-128 CBC: for legacy applications only"),
)
_BINDINGS = ((HTTP_POST, "HTTP-POST"), (HTTP_REDIRECT, "HTTP-Redirect"))
_TEXTS = ("audience", "recipient", "destination", "issuer", "claimsPrefix")
_SWITCHES: Mapping[str, bool] = {
    "createUpnClaim": True,
    "passthroughClaimsWithNoMapping": True,
    "mapUnknownClaimsAsIs": False,
    "mapIdentities": True,
    "typedAttributes": True,
    "includeAttributeNameFormat": True,
}
_CHOICES: Mapping[str, Any] = {
    "nameIdentifierFormat": UNSPECIFIED_NAME,
    "signatureAlgorithm": "rsa-sha256",
    "digestAlgorithm": "sha256",
    "encryptionAlgorithm": "aes256-gcm",
    "binding": HTTP_POST,
    "lifetimeInSeconds": DEFAULT_LIFETIME,
}
GROUPS: Sequence[tuple[str, Sequence[str]]] = (
    ("Addresses of the application", ("callbacks", "audience", "logout_callback", "slo_enabled", "binding")),
    ("Identifier of the user (NameID)", ("nameIdentifierFormat", "nameIdentifierProbes")),
    (
        "Attributes",
        ("mappings", "passthroughClaimsWithNoMapping", "mapUnknownClaimsAsIs", "claimsPrefix", "createUpnClaim", "mapIdentities"),
    ),
    (
        "Signatures and encryption",
        ("signs", "signatureAlgorithm", "digestAlgorithm", "signingCert", "encryptionCert", "encryptionAlgorithm"),
    ),
    (
        "More settings",
        (
            *("lifetimeInSeconds", "recipient", "destination", "issuer", "authnContextClassRef"),
            *("typedAttributes", "includeAttributeNameFormat", "consumers"),
        ),
    ),
)
_WIDE = {"size": 70, "spellcheck": "false"}


def _text(label: str, help_text: str = "") -> forms.CharField:
    return forms.CharField(required=False, label=label, help_text=help_text, max_length=2048, widget=forms.TextInput(attrs=_WIDE))


def _certificate(label: str, help_text: str) -> forms.CharField:
    area = forms.Textarea(attrs={"rows": 4, "cols": 70, "spellcheck": "false"})
    return forms.CharField(required=False, label=label, help_text=help_text, widget=area)


def _switch(label: str, help_text: str = "") -> forms.BooleanField:
    return forms.BooleanField(required=False, label=label, help_text=help_text)


class SamlForm(ShowsValues, forms.Form):
    """A form with one field per setting. The add-on omits values that equal the default."""

    callbacks = LinesField(
        label="Assertion consumer service",
        help_text="The addresses at which the application receives SAML responses, one per line, the default first. Responses are "
        "sent only to these addresses.",
    )
    audience = _text(
        "Audience",
        "The entity id of the application. If this is empty, the audience of an assertion is the issuer of the login request. If a "
        "login starts at this service, there is no such request, so the assertion has no audience.",
    )
    logout_callback = _text(
        "Logout address",
        "The address at which the application receives logout requests and logout responses. If this is empty, the service sends none.",
    )
    slo_enabled = _switch("Send a logout request when the user logs out of another application")
    binding = forms.ChoiceField(label="How logout messages are sent", choices=_BINDINGS)
    nameIdentifierFormat = forms.ChoiceField(  # noqa: N815  (the name of the wire)
        label="Format of the NameID", choices=_FORMATS, help_text="Used unless the login request asks for another format."
    )
    nameIdentifierProbes = LinesField(  # noqa: N815
        label="Value of the NameID",
        help_text="Names of SAML attributes or fields of the user, one per line. The first of them that has a value for the user becomes "
        "the NameID. If none has a value, the user id becomes the NameID. If this is empty, the default names are used.",
    )
    mappings = LinesField(
        rows=8,
        label="Mapping",
        help_text="One per line: field of the user = name of the SAML attribute. Write fields in metadata with a dot, such as "
        "app_metadata.department. For groups and roles, write “groups” and “roles”.",
    )
    passthroughClaimsWithNoMapping = _switch(  # noqa: N815
        "Also send the fields of the user that have no line above",
        "Metadata, groups, roles and data about logins are not sent in this way. They need a line.",
    )
    mapUnknownClaimsAsIs = _switch(  # noqa: N815
        "Keep the names of fields that have no line above", "If this is off, the prefix below is added to each of these names."
    )
    claimsPrefix = _text("Prefix for fields without a line", "If this is empty, urn:svc:claims: is used.")  # noqa: N815
    createUpnClaim = _switch("Send a UPN", "The user principal name: the email address or, without one, the user id.")  # noqa: N815
    mapIdentities = _switch(  # noqa: N815
        "Send the identities of the user", "For each identity: its provider, its connection, and whether the provider is social."
    )
    signs = forms.ChoiceField(label="Signed part", choices=_SIGNED)
    signatureAlgorithm = forms.ChoiceField(label="Signature algorithm", choices=_SIGNATURES)  # noqa: N815
    digestAlgorithm = forms.ChoiceField(label="Digest algorithm", choices=_DIGESTS)  # noqa: N815
    signingCert = _certificate(  # noqa: N815
        "Certificates for signed requests",
        "One or more certificates of the application in PEM format. If you enter a certificate, the application must sign its login "
        "and logout requests.",
    )
    encryptionCert = _certificate(  # noqa: N815
        "Encryption certificate", "A certificate of the application in PEM format. If you enter one, assertions are encrypted."
    )
    encryptionAlgorithm = forms.ChoiceField(label="Encryption algorithm", choices=_CIPHERS)  # noqa: N815
    lifetimeInSeconds = forms.IntegerField(  # noqa: N815
        label="Lifetime of an assertion", min_value=1, help_text="Seconds in which the application must use the assertion."
    )
    recipient = _text(
        "Recipient", "The value in assertions. If this is empty, assertions contain the address to which the response is sent."
    )
    destination = _text("Destination", "The value in responses. If this is empty, responses contain the address to which they are sent.")
    issuer = _text(
        "Entity id of this service",
        "If this is empty, the entity id of the tenant is used. Enter one only if the application needs another.",
    )
    authnContextClassRef = _text("Authentication context class", "Used unless the login request asks for another class.")  # noqa: N815
    typedAttributes = _switch(  # noqa: N815
        "Send the type of each attribute value", "In the XML attribute “xsi:type”. If this is off, each type is “xs:anyType”."
    )
    includeAttributeNameFormat = _switch("Send the NameFormat of each attribute")  # noqa: N815
    consumers = LinesField(
        label="Assertion consumer services by index",
        help_text="One per line: index and address, such as 1 https://app.example.com/acs. Login requests can contain an index instead of "
        "an address.",
    )

    def groups(self) -> Iterator[tuple[str, list[forms.BoundField]]]:
        """Yield each heading with its fields."""
        for title, names in GROUPS:
            yield title, [self[name] for name in names]

    def clean_mappings(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for line in self.cleaned_data["mappings"]:
            member, separator, claim = (part.strip() for part in line.partition("="))
            if not (member and separator and claim):
                raise forms.ValidationError(f"Enter each line as “field = attribute”, such as “email = mail”. Wrong line: {line[:80]}")
            found.setdefault(member, []).append(claim)
        return found

    def clean_consumers(self) -> list[dict[str, Any]]:
        found = []
        for line in self.cleaned_data["consumers"]:
            index, _, address = line.partition(" ")
            if not (index.isdecimal() and address.strip()):
                raise forms.ValidationError(
                    f"Enter each line as index and address, such as 1 https://app.example.com/acs. Wrong line: {line[:80]}"
                )
            found.append({"index": int(index), "url": address.strip()})
        return found

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if not self.errors:
            judge = SamlAddon(data=self.addon())
            if not judge.is_valid():
                for name, problem in judge.errors.items():
                    place = _FIELD_OF.get(name, name)
                    self.add_error(place if place in self.fields else None, _sentences(problem))
        return values

    def addon(self) -> dict[str, Any]:
        """Return the settings in the format of `addons.samlp`."""
        values = self.cleaned_data
        addon: dict[str, Any] = {name: values[name].strip() for name in _TEXTS if values[name].strip()}
        addon |= {name: values[name] for name, default in {**_SWITCHES, **_CHOICES}.items() if values[name] != default}
        addon |= {name: values[name] for name in ("signingCert", "encryptionCert") if values[name].strip()}
        mappings = {member: claims[0] if len(claims) == 1 else claims for member, claims in values["mappings"].items()}
        if mappings != DEFAULT_MAPPINGS:
            addon["mappings"] = mappings
        if tuple(values["nameIdentifierProbes"]) not in ((), DEFAULT_PROBES):
            addon["nameIdentifierProbes"] = values["nameIdentifierProbes"]
        if values["signs"] != "assertion":
            addon |= {"signResponse": True} | ({"signAssertion": True} if values["signs"] == "both" else {})
        if values["authnContextClassRef"].strip() not in ("", UNSPECIFIED_CLASS):
            addon["authnContextClassRef"] = values["authnContextClassRef"].strip()
        if values["consumers"]:
            addon["assertionConsumerServices"] = values["consumers"]
        if values["logout_callback"].strip() or not values["slo_enabled"]:
            addon["logout"] = {"callback": values["logout_callback"].strip(), "slo_enabled": values["slo_enabled"]}
        return addon


_FIELD_OF = {"logout": "logout_callback", "assertionConsumerServices": "consumers", "signAssertion": "signs", "signResponse": "signs"}


def form_values(addon: Mapping[str, Any], callbacks: Sequence[str]) -> dict[str, Any]:
    """Return the form's values of an add-on, including defaults."""
    logout = addon.get("logout") or {}
    mappings = addon.get("mappings")
    signs_response, signs_assertion = addon.get("signResponse") is True, addon.get("signAssertion")
    consumers = addon.get("assertionConsumerServices") or ()
    return {
        **{name: addon.get(name) or "" for name in (*_TEXTS, "signingCert", "encryptionCert")},
        **{name: default if addon.get(name) is None else addon[name] for name, default in {**_SWITCHES, **_CHOICES}.items()},
        "authnContextClassRef": addon.get("authnContextClassRef") or UNSPECIFIED_CLASS,
        "callbacks": list(callbacks),
        "mappings": list(_mapping_lines(DEFAULT_MAPPINGS if mappings is None else mappings)),
        "nameIdentifierProbes": list(addon.get("nameIdentifierProbes") or DEFAULT_PROBES),
        "logout_callback": logout.get("callback") or "",
        "slo_enabled": logout.get("slo_enabled") is not False,
        "signs": ("both" if signs_assertion else "response") if signs_response else "assertion",
        "consumers": [f"{each['index']} {each['url']}" for each in consumers],
    }


def _mapping_lines(mappings: Mapping[str, Any]) -> Iterator[str]:
    # The database does not keep the order of members.
    for member, claims in sorted(mappings.items()):
        for claim in [claims] if isinstance(claims, str) else claims:
            yield f"{member} = {claim}"


def _sentences(problem: Any) -> list[str]:
    if isinstance(problem, Mapping):
        return [text for inner in problem.values() for text in _sentences(inner)]
    return [text for inner in problem for text in _sentences(inner)] if isinstance(problem, list) else [sentence_of(str(problem))]
