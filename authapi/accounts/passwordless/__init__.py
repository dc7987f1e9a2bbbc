"""Login without a password: codes and links, sent to an email address or a phone number (docs/adr/0101).

`starting` sends codes and links, `login` checks them. Both are independent of protocols; endpoints, grants and pages call them.
"""
