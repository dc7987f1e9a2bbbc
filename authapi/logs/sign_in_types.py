"""The codes of the sign-in log in words, for people. Pure."""

from __future__ import annotations

IN_WORDS: dict[str, str] = {
    "s": "Login",
    "f": "Failed login",
    "fp": "Wrong password",
    "fu": "Unknown user",
    "pwd_leak": "Leaked password",
    "limit_wc": "Blocked account",
    "limit_sul": "Too many logins",
    "limit_mu": "Blocked address",
    "ssa": "Silent login",
    "fsa": "Failed silent login",
    "slo": "Logout",
    "sd": "Delegation",
    "fd": "Failed delegation",
    "flo": "Client not told of a logout",
    "cls": "Code or link by e-mail",
    "cs": "Code by text message",
    "ss": "Sign-up",
    "fs": "Failed sign-up",
    "sv": "Verified e-mail address",
    "fv": "Failed verification",
    "scpr": "Asked for a new password",
    "fcpr": "Failed to ask for a new password",
    "scp": "Changed password",
    "fcp": "Failed change of a password",
    "si": "Accepted an invitation",
    "fi": "Failed to accept an invitation",
    "ublkdu": "Lifted block",
    "seacft": "Code for a token",
    "feacft": "Failed: code for a token",
    "sertft": "Refresh token for a token",
    "fertft": "Failed: refresh token for a token",
    "sepft": "Password for a token",
    "fepft": "Failed: password for a token",
    "seccft": "Client credentials for a token",
    "feccft": "Failed: client credentials for a token",
}


def in_words(code: str) -> str:
    """Return what a code means, or the code itself where nobody has said."""
    return IN_WORDS.get(code, code)
