"""Errors of foreign XML. Each message helps to fix the error, and quotes nothing of the document."""

from __future__ import annotations


class XmlError(ValueError):
    """The document cannot be used."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


class XmlMalformed(XmlError):
    """The document is not well-formed XML in UTF-8."""


class XmlTooLarge(XmlError):
    """The document is larger or deeper than allowed."""


class ForbiddenXml(XmlError):
    """The document contains a document type declaration, which is not allowed."""


class AmbiguousText(XmlError):
    """A value contains elements where text is expected."""


class SignatureMissing(XmlError):
    """The element is not signed."""


class SignatureRefused(XmlError):
    """The signature has a form that is not accepted."""


class AlgorithmRefused(SignatureRefused):
    """The signature uses an algorithm that is not allowed."""


class SignatureInvalid(XmlError):
    """The signature was not made with any of the trusted certificates, or the element was changed after it was signed."""


class DecryptionFailed(XmlError):
    """None of the keys decrypts the encrypted element."""
