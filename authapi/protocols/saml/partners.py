"""Converts the metadata of a service provider to the settings of its application. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from authapi.protocols.saml.metadata import PartnerFacts
from authapi.protocols.saml.names import EMAIL_ADDRESS, EMAIL_NAME, OTHER_SPELLINGS, PERSISTENT_NAME, TRANSIENT_NAME, UNSPECIFIED_NAME
from authapi.xml.bindings import HTTP_POST

_SERVED = (EMAIL_NAME, PERSISTENT_NAME, TRANSIENT_NAME, UNSPECIFIED_NAME)


@dataclass(frozen=True)
class Proposal:
    """Settings that are not saved yet, and notes about them for the administrator."""

    callbacks: tuple[str, ...]
    addon: Mapping[str, Any]
    notes: tuple[str, ...] = field(default=())


def proposed(facts: PartnerFacts, present: Mapping[str, Any], *, encrypts: bool = False) -> Proposal:
    """Return the settings for an application: its present settings, overridden by the metadata.

    A signing certificate is used only if the metadata states that the application signs its requests: if an application has a certificate,
    this service refuses its unsigned requests.
    """
    ordered = sorted(facts.consumers, key=lambda each: (not each.is_default, each.index))
    addresses = tuple(dict.fromkeys(each.address for each in ordered))
    addon: dict[str, Any] = {**present, "audience": facts.entity_id}
    if len(ordered) > 1:
        addon["assertionConsumerServices"] = [{"index": each.index, "url": each.address} for each in _unique(facts)]
    notes: list[str] = []
    _take_logout(facts, addon)
    _take_certificates(facts, addon, notes, encrypts=encrypts)
    _take_format(facts, addon, notes)
    return Proposal(addresses, addon, tuple(notes))


def _unique(facts: PartnerFacts) -> list[Any]:
    return list({each.index: each for each in reversed(facts.consumers)}.values())[::-1]


def _take_logout(facts: PartnerFacts, addon: dict[str, Any]) -> None:
    found = next((each for each in facts.logouts if each.binding == HTTP_POST), next(iter(facts.logouts), None))
    if found is not None:
        addon["logout"] = {"callback": found.address, "slo_enabled": True}
        addon["binding"] = found.binding


def _take_certificates(facts: PartnerFacts, addon: dict[str, Any], notes: list[str], *, encrypts: bool) -> None:
    if facts.signs_requests and facts.signing:
        addon["signingCert"] = "".join(facts.signing)
        notes.append("The application signs its requests: unsigned requests will be refused.")
    elif facts.signing:
        notes.append("The metadata has a signing certificate but does not state that requests are signed: the certificate is left out.")
    if facts.encryption and encrypts:
        addon["encryptionCert"] = facts.encryption[0]
    elif facts.encryption:
        notes.append("The metadata has a certificate for encryption, which is left out: you did not choose to encrypt assertions.")


def _take_format(facts: PartnerFacts, addon: dict[str, Any], notes: list[str]) -> None:
    formats = [OTHER_SPELLINGS.get(each, each) for each in facts.name_id_formats]
    chosen = next((each for each in formats if each in _SERVED), None)
    if chosen is None:
        if formats:
            notes.append("This service supports none of the NameID formats in the metadata.")
        return
    addon["nameIdentifierFormat"] = chosen
    if chosen == EMAIL_NAME:
        addon["nameIdentifierProbes"] = [EMAIL_ADDRESS]
