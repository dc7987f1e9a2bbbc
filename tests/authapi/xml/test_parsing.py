"""XML from outside: refusals before, during and after parsing."""

from __future__ import annotations

import base64
import time
import zlib

import pytest

from authapi.xml.failures import AmbiguousText, ForbiddenXml, XmlError, XmlMalformed, XmlTooLarge
from authapi.xml.parsing import MESSAGE, Bounds, child, deflated, from_base64, inflated, parse, serialized, text_of

LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))


def test_each_text_of_a_document_is_read_as_a_whole() -> None:
    root = parse(b'<?xml version="1.0" encoding="UTF-8"?><a><!-- x --><b>one<!-- y -->two<?z?><![CDATA[<three>]]></b></a>')
    inner = child(root, "b")
    assert inner is not None
    assert text_of(inner) == inner.text == "onetwo<three>"
    assert serialized(root) == b"<a><b>onetwo&lt;three&gt;</b></a>"


@pytest.mark.parametrize(
    "raw",
    [
        b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>',
        b'<!DOCTYPE a SYSTEM "http://127.0.0.1:1/a.dtd"><a/>',
        b'<!DOCTYPE a PUBLIC "-//x" "http://127.0.0.1:1/a.dtd"><a/>',
        f'<!DOCTYPE a [<!ENTITY l0 "lol">{LAUGHS}]><a>&l9;</a>'.encode(),
        f'<!DOCTYPE a [<!ENTITY l0 "lol">{LAUGHS}]><a b="&l9;"/>'.encode(),
        b'<!DOCTYPE a [<!ENTITY % x SYSTEM "http://127.0.0.1:1/"> %x;]><a/>',
        b"<!DOCTYPE a [<!ATTLIST a ID CDATA 'x'>]><a/>",
        b"<a><!-- <!DOCTYPE b> --></a>",
    ],
    ids=[
        "external entity",
        "network DTD",
        "public DTD",
        "billion laughs",
        "billion laughs in an attribute",
        "parameter",
        "default",
        "comment",
    ],
)
def test_a_document_type_is_refused_before_it_is_parsed(raw: bytes) -> None:
    with pytest.raises(ForbiddenXml):
        parse(raw)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "utf-7", "cp037"])
def test_another_encoding_cannot_hide_a_document_type(encoding: str) -> None:
    with pytest.raises(XmlError):
        parse(f'<?xml version="1.0" encoding="{encoding}"?><!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>'.encode(encoding))


@pytest.mark.parametrize("declared", ["iso-8859-1", "utf-7", "UTF-16", "cp037", "ebcdic-cp-us"])
def test_a_declared_encoding_other_than_utf_8_is_refused(declared: str) -> None:
    with pytest.raises(XmlMalformed):
        parse(f'<?xml version="1.0" encoding="{declared}"?><a/>'.encode())


@pytest.mark.parametrize(
    "raw",
    [b"", b"x", b"<a>", b"<a/><b/>", b"<a>&x;</a>", b"<a b='1' b='2'/>", b"<x:a/>", b"\xff<a/>", b"<a>\x00</a>", b"<a/>x", b"\xc3(<a/>"],
    ids=repr,
)
def test_a_malformed_document_is_refused(raw: bytes) -> None:
    with pytest.raises(XmlMalformed):
        parse(raw)


def test_an_undeclared_prefix_is_refused_in_inner_elements_too() -> None:
    with pytest.raises(XmlMalformed):
        parse(b"<a><x:b/></a>")


def test_a_byte_order_mark_is_skipped() -> None:
    assert parse(b"\xef\xbb\xbf<a/>").tag == "a"


def test_a_document_of_too_many_bytes_is_refused_before_it_is_read() -> None:
    with pytest.raises(XmlTooLarge):
        parse(b"<a>" + b"x" * MESSAGE.size)


@pytest.mark.parametrize(
    "raw",
    [b"<a>" * 41, b"<a>" + b"<b/>" * 10_000 + b"</a>", b"<a " + b" ".join(b"b%d=''" % n for n in range(20_001)) + b"/>"],
    ids=["deep", "many elements", "many attributes"],
)
def test_a_document_that_is_nested_too_deeply_or_too_large_is_refused(raw: bytes) -> None:
    with pytest.raises(XmlTooLarge):
        parse(raw)


def test_declarations_of_namespaces_are_counted() -> None:
    declared = b" ".join(b'xmlns:n%d="urn:%d"' % (n, n) for n in range(30))
    with pytest.raises(XmlTooLarge):
        parse(b"<a " + declared + b"/>", Bounds(size=10_000, depth=5, elements=5, attributes=20))


def test_the_largest_allowed_document_is_read_within_a_second() -> None:
    started = time.perf_counter()
    parse(b"<a>" + b"<b c='d'/>" * 9_000 + b"</a>")
    assert time.perf_counter() - started < 1


def test_an_element_with_two_children_of_one_name_is_refused() -> None:
    with pytest.raises(XmlMalformed):
        child(parse(b"<a><b/><b/></a>"), "b")


def test_an_element_inside_a_text_is_refused() -> None:
    with pytest.raises(AmbiguousText):
        text_of(parse(b"<a>one<b/>two</a>"))


def test_compressed_text_is_decompressed() -> None:
    assert inflated(deflated(b"<a/>" * 100)) == b"<a/>" * 100


def test_a_decompression_bomb_is_stopped_at_the_limit() -> None:
    bomb = zlib.compressobj(wbits=-15)
    raw = b"".join(bomb.compress(b"\0" * 1_000_000) for _ in range(200)) + bomb.flush()
    assert len(raw) < MESSAGE.size
    started = time.perf_counter()
    with pytest.raises(XmlTooLarge):
        inflated(raw)
    assert time.perf_counter() - started < 0.5


def test_a_compressed_document_over_the_limit_is_not_decompressed() -> None:
    with pytest.raises(XmlTooLarge):
        inflated(b"x" * 101, limit=100)


@pytest.mark.parametrize("raw", [deflated(b"<a/>" * 9)[:-1], deflated(b"<a/>") + b"more", b"\xff\xff", zlib.compress(b"<a/>")])
def test_truncated_streams_and_streams_with_trailing_data_are_refused(raw: bytes) -> None:
    with pytest.raises(XmlMalformed):
        inflated(raw)


def test_base64_may_have_line_breaks_but_no_other_characters() -> None:
    assert from_base64(" PGEv\r\nPg== \n") == b"<a/>"
    for text in ("PGEvPg=", "PGE*vPg==", "PGEvPg==PGEvPg==", "äöü"):
        with pytest.raises(XmlMalformed):
            from_base64(text)


def test_overlong_base64_is_refused() -> None:
    with pytest.raises(XmlTooLarge):
        from_base64(base64.b64encode(b"x" * 101).decode(), limit=100)
