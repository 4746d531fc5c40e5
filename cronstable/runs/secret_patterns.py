"""
What looks like a secret without being known: patterns, and their replacement in text.

Every pattern is anchored at a literal and bounded, so that no text makes the search take more
than linear time.  docs/reporting.md, "Masking", lists what is recognised.
"""

from __future__ import annotations

import re
from collections.abc import Callable

MASK = "***"

_WORDS = (
    r"passw(?:or)?d|passphrase|(?<=[_\-;])pwd|(?<=[_\-])pass(?![A-Za-z])|secret|token(?!s)"
    r"|api[_\-]?key|access[_\-]?key|account[_\-]?key|private[_\-]?key|signing[_\-]?key"
    r"|encryption[_\-]?key|auth[_\-]?key|credentials?"
)
_WORD = re.compile(_WORDS, re.IGNORECASE)
_PLAIN_ENDINGS = (
    "_file",
    "_path",
    "_dir",
    "_id",
    "_url",
    "_uri",
    "_name",
    "_type",
    "_count",
    "_length",
    "_expiry",
)

_LINE = re.compile(
    r"^([ \t]{0,64}(?:export[ \t]{1,8}|declare[ \t]{1,8}-[A-Za-z]{1,8}[ \t]{1,8}|set[ \t]{1,8})?)"
    r"([A-Za-z_][\w.\-]{0,127})=([^\r\n]+)",
    re.MULTILINE,
)
_INLINE = re.compile(
    rf"({_WORDS})([\w.\-]{{0,40}})([\"']?)([ \t]{{0,4}}(?::=|=>|=|:)[ \t]{{0,4}})"
    r"(\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|[^\s\"'&]+)",
    re.IGNORECASE,
)
_FLAG = re.compile(
    rf"(--[\w\-]{{0,40}}?(?:{_WORDS})[\w\-]{{0,40}}[ \t]{{1,4}})([^\s\-]\S*)", re.IGNORECASE
)
_AUTHORIZATION = re.compile(
    r"(authorization[\"']?[ \t]{0,4}[:=][ \t]{0,4}[\"']?"
    r"(?:(?:bearer|basic|digest|token|negotiate|apikey)[ \t]{1,4})?)([^\r\n\"']+)",
    re.IGNORECASE,
)
_BEARER = re.compile(r"(\bbearer[ \t]{1,4})([\w.~+/=\-]{16,})", re.IGNORECASE)
_COOKIE = re.compile(r"(cookie[ \t]{0,4}:[ \t]{0,4})([^\r\n\"']+)", re.IGNORECASE)
_USERINFO = re.compile(r"(://[^\s:/?#@\"'<>]{0,128}:)(?!\d{1,5}(?:[/?#\s]|$))[^\s\"'<>]{1,256}(@)")
_USER_ONLY = re.compile(r"(://)[A-Za-z0-9_\-]{20,256}(@)")
_FORMATS = re.compile(
    r"(?<![A-Za-z0-9_\-])(?:"
    r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])"
    r"|AIza[\w\-]{35}"
    r"|ya29\.[\w\-]{20,}"
    r"|gh[pousr]_[A-Za-z0-9]{36,}"
    r"|github_pat_\w{22,}"
    r"|glpat-[\w\-]{20,}"
    r"|xox[abeoprs]-[A-Za-z0-9\-]{10,}"
    r"|[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"
    r"|sk-[\w\-]{20,}"
    r"|npm_[A-Za-z0-9]{36}"
    r"|dop_v1_[a-f0-9]{64}"
    r"|SG\.[\w\-]{16,}\.[\w\-]{16,}"
    r"|eyJ[\w\-]{8,}\.[\w\-]{8,}\.[\w\-]*"
    r")"
)

KEY_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
KEY_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_BLOCK = re.compile(
    rf"({KEY_BEGIN.pattern})(?:[^\-]|-(?!----))*({KEY_END.pattern})"
    rf"|({KEY_BEGIN.pattern})(?:(?:[ \t\r\n]|\\[rn]){{0,8}}[A-Za-z0-9+/=]{{32,}})*"
)
KEY_BODY = re.compile(r"[ \t]*(?:[A-Za-z0-9+/=]{1,128}|[A-Za-z\-]{1,32}: .{0,200})?[ \t]*\r?")
"""What a line inside a private key block may look like: base64, a header, or blank."""


def mask_patterns(text: str) -> str:
    """Return C{text} with everything that looks like a secret replaced."""
    lower = text.lower()
    for literals, apply in _PASSES:
        if any(literal in lower for literal in literals):
            text = apply(text)
    return text


def secret_key(key: str) -> bool:
    """Return whether C{key} reads like the name of a secret."""
    return _WORD.search(key) is not None and not key.lower().endswith(_PLAIN_ENDINGS)


def _line(match: re.Match[str]) -> str:
    lead, key, _ = match.groups()
    return f"{lead}{key}={MASK}" if secret_key(key) else match.group()


def _inline(match: re.Match[str]) -> str:
    word, rest, quote, sign, value = match.groups()
    if rest.lower().endswith(_PLAIN_ENDINGS) or (
        sign.strip() == ":" and not quote and not _opens_line(match)
    ):
        return match.group()
    mark = value[0] if value[0] in "\"'" else ""
    return f"{word}{rest}{quote}{sign}{mark}{MASK}{mark}"


def _opens_line(match: re.Match[str]) -> bool:
    """Whether only blanks, a dash and the start of the key stand before the match in its line."""
    text, at = match.string, match.start()
    begin = max(text.rfind("\n", max(at - 129, 0), at) + 1, at - 129, 0)
    return re.fullmatch(r"[ \t\-]*[\w.\-]*", text[begin:at]) is not None


def _block(match: re.Match[str]) -> str:
    begin, end, cut = match.groups()
    return f"{begin}\n{MASK}\n{end}" if begin else f"{cut}\n{MASK}"


def _sub(
    pattern: re.Pattern[str], by: str | Callable[[re.Match[str]], str]
) -> Callable[[str], str]:
    return lambda text: pattern.sub(by, text)


_KEEP_FIRST = rf"\g<1>{MASK}"
_KEEP_BOTH = rf"\g<1>{MASK}\g<2>"
_NAMES = ("passw", "passphrase", "_pass", "-pass", "pwd", "secret", "token", "key", "credential")
_BEGINNINGS = (
    *("akia", "asia", "abia", "acca", "aiza", "ya29.", "github_pat_", "glpat-", "xox", "npm_"),
    *("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "k_live_", "k_test_", "sk-", "dop_v1_", "sg."),
    "eyj",
)
_PASSES: tuple[tuple[tuple[str, ...], Callable[[str], str]], ...] = (
    (("-----begin ",), _sub(_KEY_BLOCK, _block)),
    (("://",), _sub(_USERINFO, _KEEP_BOTH)),
    (("://",), _sub(_USER_ONLY, _KEEP_BOTH)),
    (_BEGINNINGS, _sub(_FORMATS, MASK)),
    (("authorization",), _sub(_AUTHORIZATION, _KEEP_FIRST)),
    (("bearer",), _sub(_BEARER, _KEEP_FIRST)),
    (("cookie",), _sub(_COOKIE, _KEEP_FIRST)),
    (("--",), _sub(_FLAG, _KEEP_FIRST)),
    (_NAMES, _sub(_LINE, _line)),
    (_NAMES, _sub(_INLINE, _inline)),
)
"""Each pass with lower-case texts of which one must occur for it to find anything."""
