"""Reads TXT records of the DNS, as proof that a tenant controls a name. Opens no connection to the host with this name."""

from __future__ import annotations

import dns.exception
import dns.name
import dns.nameserver
import dns.rdatatype
import dns.resolver
from django.conf import settings


class RecordsUnread(Exception):
    """The name servers gave no answer."""


def text_records(name: str) -> frozenset[str]:
    """Return the TXT records at `name` itself; empty if the name has no TXT record.

    Aliases are not followed. Otherwise, if a domain has a wildcard alias, the owner of the alias's target could prove control over every
    name below the domain. Queries the servers of `DNS_SERVERS` for at most `DNS_LOOKUP_SECONDS`. Raises `RecordsUnread` if no server
    answers.
    """
    asked = dns.name.from_text(name)
    try:
        answer = _resolver().resolve(asked, dns.rdatatype.TXT, search=False, lifetime=settings.DNS_LOOKUP_SECONDS)
    except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer, dns.resolver.YXDOMAIN):
        return frozenset()
    except (dns.exception.DNSException, OSError) as error:
        raise RecordsUnread("The name servers gave no answer.") from error
    if answer.canonical_name != asked:
        return frozenset()
    # RFC 7208, 3.3, and common practice: the strings of one record are one text.
    return frozenset(b"".join(record.strings).decode("ascii", "replace") for record in answer)


def _resolver() -> dns.resolver.Resolver:
    """Return a resolver without a cache.

    It queries the servers of `DNS_SERVERS`, or the servers of the machine if `DNS_SERVERS` is empty.
    """
    if not settings.DNS_SERVERS:
        return dns.resolver.Resolver()
    resolver = dns.resolver.Resolver(configure=False)
    resolver.nameservers = [dns.nameserver.Do53Nameserver(address, port) for address, port in settings.DNS_SERVERS]
    return resolver
