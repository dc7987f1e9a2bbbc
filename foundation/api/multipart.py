"""Parser of `multipart/form-data`, which a single operation accepts. Members are parsed as in a form; the file is written to disk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import IO, Any

from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import TemporaryFileUploadHandler
from django.http.multipartparser import MultiPartParser, MultiPartParserError
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.parsers import BaseParser

from foundation.api.bodies import FormMembers
from foundation.api.refusals import Refusal, invalid_body


class MultipartBody(BaseParser):
    """Accepts parts in any order. A part with a file name is a file, with any name and type. All other parts are text."""

    media_type = "multipart/form-data"

    def parse(self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> FormMembers:
        request = (parser_context or {})["request"]
        meta = {**request.META, "CONTENT_TYPE": media_type}
        body: Any = stream
        try:
            texts, files = MultiPartParser(meta, body, [TemporaryFileUploadHandler(request)], "utf-8").parse()
        except RequestDataTooBig as error:
            raise Refusal(413, "The parts beside the file are too large.", "invalid_body") from error
        except (MultiPartParserError, SuspiciousOperation, UnicodeError) as error:
            raise invalid_body("Not a valid multipart body", "body") from error
        members = FormMembers()
        for found in (texts, files):
            for name, values in found.lists():
                if len(values) > 1 or name in members:
                    close_files(file for _, several in files.lists() for file in several)
                    raise invalid_body("Expected one part of this name", name[:64])
                members[name] = values[0]
        return members


def close_files(members: Iterable[Any]) -> None:
    """Close the files among the members of a body. Closing deletes the files."""
    for member in members:
        if isinstance(member, UploadedFile):
            member.close()


@extend_schema_field(OpenApiTypes.BINARY)
class Upload(serializers.Field[Any, Any, Any, Any]):
    """A file of a multipart body. The endpoint must call `close_files` after it has read the file."""

    default_error_messages = {"invalid": "Expected a file"}

    def to_internal_value(self, data: Any) -> UploadedFile[bytes]:
        if not isinstance(data, UploadedFile):
            self.fail("invalid")
        return data

    def to_representation(self, value: Any) -> Any:
        return value
