"""
Masking: secrets out of whatever is archived, reported or logged.

Known values are found also where they are URL-encoded, JSON- or HTML-escaped or in base64; on
request anything that merely looks like a secret goes too.  Pure; docs/reporting.md, "Masking",
says what a user may rely on.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

from cronstable.config.values import SHORTEST_MASKED, JobConfig
from cronstable.runs.secret_patterns import KEY_BEGIN, KEY_BODY, KEY_END, MASK, mask_patterns

_SHORTEST_PART = 8
_LONGEST_LINE = 65536
_KEPT_OF_LONG_LINE = 4096
_MASK_BYTES = MASK.encode()


class Masker:
    """
    Replaces C{values} in text, in all their usual encodings; with C{patterns} also what looks
    like a secret.  False when it would never change anything.
    """

    def __init__(self, values: Iterable[str] = (), patterns: bool = False) -> None:
        self.values = tuple(values)
        self.patterns = patterns
        forms = sorted({form for value in self.values for form in forms_of(value)})
        forms.sort(key=len, reverse=True)
        self._forms = tuple(forms)
        self._raw = tuple(form.encode("utf-8", "surrogateescape") for form in forms)
        self._text = re.compile("|".join(map(re.escape, forms)))
        self._bytes = re.compile(b"|".join(map(re.escape, self._raw)))

    def __bool__(self) -> bool:
        return self.patterns or bool(self._forms)

    def mask(self, text: str) -> str:
        """Return C{text} with every secret replaced."""
        if any(form in text for form in self._forms):
            text = self._text.sub(MASK, text)
        return mask_patterns(text) if self.patterns else text

    def stream(self) -> MaskStream:
        """Return a fresh masker of output that comes in pieces."""
        return MaskStream(self._raw, self._bytes, self.patterns)


NOTHING = Masker()
"""Masks nothing."""


class MaskStream:
    """
    Masks one stream of bytes, also where a secret is split between pieces.

    Known values hold back at most the beginning of one that the next piece may complete.
    Patterns are judged line by line, and a line longer than 64 KiB in parts.
    """

    def __init__(self, forms: tuple[bytes, ...], search: re.Pattern[bytes], patterns: bool) -> None:
        self._forms = forms
        self._search = search
        self._held = b""
        self._lines = _Lines() if patterns else None

    def feed(self, data: bytes) -> bytes:
        """Take the next piece; return what can be shown by now, masked."""
        if self._forms:
            data = self._values(self._held + data)
        return data if self._lines is None else self._lines.feed(data)

    def finish(self) -> bytes:
        """Return what was held back, masked; the stream is over."""
        rest, self._held = self._held, b""
        if rest:
            rest = self._search.sub(_MASK_BYTES, rest)
        return rest if self._lines is None else self._lines.feed(rest) + self._lines.finish()

    def _values(self, data: bytes) -> bytes:
        done, hold = 0, self._unsettled(data, 0)
        if not any(form in data for form in self._forms):
            self._held = data[hold:]
            return data[:hold] if self._held else data
        shown: list[bytes] = []
        for match in self._search.finditer(data):
            if match.start() >= hold:
                break
            shown += (data[done : match.start()], _MASK_BYTES)
            done = match.end()
            if done > hold:
                hold = self._unsettled(data, done)
        shown.append(data[done:hold])
        self._held = data[hold:]
        return b"".join(shown)

    def _unsettled(self, data: bytes, start: int) -> int:
        """Return where the longest tail begins that may be the start of a value."""
        end = earliest = len(data)
        for form in self._forms:
            first = form[:1]
            at = data.find(first, max(start, end - len(form) + 1), earliest)
            while at != -1:
                if form.startswith(data[at:]):
                    earliest = at
                    break
                at = data.find(first, at + 1, earliest)
        return earliest


class _Lines:
    """Judges patterns by whole lines, and keeps track of a private key block."""

    def __init__(self) -> None:
        self._held = b""
        self._in_key = False

    def feed(self, data: bytes) -> bytes:
        """Return the complete lines by now, masked."""
        data = self._held + data
        end = data.rfind(b"\n") + 1
        if len(data) - end > _LONGEST_LINE:
            end = len(data) - _KEPT_OF_LONG_LINE
            end = max(data.rfind(b" ", 0, end) + 1, end - _KEPT_OF_LONG_LINE)
        self._held = data[end:]
        return self._mask(data[:end])

    def finish(self) -> bytes:
        """Return the unfinished last line, masked."""
        rest, self._held = self._held, b""
        return self._mask(rest)

    def _mask(self, data: bytes) -> bytes:
        if not data:
            return b""
        text = data.decode("utf-8", "surrogateescape")
        if self._in_key:
            text = self._rest_of_key(text)
        if "-----BEGIN " in text:
            begin = list(KEY_BEGIN.finditer(text))
            self._in_key = bool(begin) and not KEY_END.search(text, begin[-1].end())
            if self._in_key:
                rest = text[begin[-1].end() :]
                text = text[: begin[-1].end()] + "\n" + MASK + "\n"
                return (mask_patterns(text) + self._rest_of_key(rest.lstrip("\r\n"))).encode(
                    "utf-8", "surrogateescape"
                )
        return mask_patterns(text).encode("utf-8", "surrogateescape")

    def _rest_of_key(self, text: str) -> str:
        """Return what of C{text} does not belong to the key block that was open before it."""
        end = KEY_END.search(text)
        if end is not None:
            self._in_key = False
            return text[end.start() :]
        lines = text.splitlines(keepends=True)
        for number, line in enumerate(lines):
            if not KEY_BODY.fullmatch(line.rstrip("\n")):
                self._in_key = False
                return "".join(lines[number:])
        return ""


def written_secrets(job: JobConfig) -> tuple[str, ...]:
    """Return the secret values that the definition of C{job} itself holds, its reporters' too."""
    secrets = [named.secret for named in job.secrets]
    for report in (job.on_failure, job.on_permanent_failure, job.on_success, job.on_late):
        secrets += (report.mail.password, report.sentry.dsn, report.webhook.url)
    return tuple(dict.fromkeys(each.value for each in secrets if each.value))


def masker_of(job: JobConfig) -> Masker | None:
    """Return what hides the secrets that the definition of C{job} holds, None if it has none."""
    values = written_secrets(job)
    return Masker(values) if values else None


def forms_of(value: str) -> Iterator[str]:
    """
    Yield every text under which C{value} may appear.

    A value of several lines is also looked for line by line, each of at least 8 characters.
    Nothing for a value of fewer than L{SHORTEST_MASKED} characters.
    """
    parts = {value, value.strip()}
    if "\n" in value.strip():
        parts |= {
            line.strip() for line in value.splitlines() if len(line.strip()) >= _SHORTEST_PART
        }
    for part in parts:
        if len(part.strip()) >= SHORTEST_MASKED:
            yield from _encodings(part)


def _encodings(value: str) -> Iterator[str]:
    yield value
    for encoded in {quote(value, safe="", errors="replace"), quote(value, errors="replace")} | {
        quote_plus(value, errors="replace")
    }:
        yield encoded
        yield re.sub("%[0-9A-F]{2}", lambda match: match.group().lower(), encoded)
    for escaped in (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]):
        yield escaped
        yield escaped.replace("/", "\\/")
        yield re.sub(r"\\u[0-9a-f]{4}", lambda match: "\\u" + match.group()[2:].upper(), escaped)
        yield _for_pages(escaped)
    yield html.escape(value)
    yield html.escape(value, quote=False)
    yield value.replace("'", "'\\''")
    for text in _base64(value.encode("utf-8", "surrogateescape")):
        yield text
        yield text.replace("+", "-").replace("/", "_")


def _for_pages(escaped: str) -> str:
    """Return JSON text as template filters write it, safe inside a page."""
    for character in "<>&'":
        escaped = escaped.replace(character, f"\\u{ord(character):04x}")
    return escaped


def _base64(data: bytes) -> Iterator[str]:
    """
    Yield C{data} in base64: alone, wrapped to the usual widths, and the part that it
    determines inside a longer encoding at each of the three alignments.
    """
    alone = base64.b64encode(data).decode("ascii")
    yield alone
    for width in (64, 76):
        if len(alone) > width:
            yield from (
                line
                for start in range(0, len(alone), width)
                if len(line := alone[start : start + width]) >= _SHORTEST_PART
            )
    bare = alone.rstrip("=")
    if len(bare) >= _SHORTEST_PART:
        yield bare
    for before, skip in ((0, 0), (1, 2), (2, 3)):
        inner = base64.b64encode(b"\0" * before + data).decode("ascii")
        part = inner[skip : (before + len(data)) * 8 // 6]
        if len(part) >= _SHORTEST_PART:
            yield part
