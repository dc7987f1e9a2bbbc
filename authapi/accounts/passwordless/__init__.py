"""Login without a password: codes and links that are sent to an e-mail address or a phone number (docs/adr/0101).

`starting` sends one, `login` takes a code, `links` takes a link. Neither knows a protocol; endpoints, grants and pages call them.
"""
