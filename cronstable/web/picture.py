"""
Badges as SVG: two boxes with a text each, which need no font that a reader has not.

docs/badges.md tells what they say.
"""

from __future__ import annotations

from html import escape
from unicodedata import east_asian_width

STYLES = ("flat", "flat-square")

HEIGHT = 20
PADDING = 6
_BASELINE = 14
_SIZE = 11

_DARK = "#4d4d4d"
_NEUTRAL = "#767676"
_COLOURS = {
    "passing": "#2a7d2e",
    "failing": "#c0392b",
    "overdue": "#a85b00",
    "running": "#1769aa",
    "paused": "#6a4fa3",
}
"""Backgrounds on which white text is readable; what is not named is neutral."""

_NARROW = frozenset("ijlI.,:;'|!()[]{}/\\ `ftr-\"")
_WIDE = frozenset("mwMW@%")


def badge(label: str, text: str, word: str, style: str) -> str:
    """Return a badge with C{text} beside C{label}, in the colour of the status C{word}."""
    label, text = _plain(label), _plain(text)
    left, right = _width(label) + 2 * PADDING, _width(text) + 2 * PADDING
    width = left + right
    said = escape(f"{label}: {text}")
    corners = ' rx="3"' if style == "flat" else ""
    # The right box reaches below the left one, so that only outer corners are round.
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{HEIGHT}" role="img"'
        f' aria-label="{said}"><title>{said}</title>'
        f'<rect width="{width}" height="{HEIGHT}" fill="{_COLOURS.get(word, _NEUTRAL)}"{corners}/>'
        f'<path fill="{_DARK}" d="{_left_box(left, 3 if corners else 0)}"/>'
        f'<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="{_SIZE}">'
        f"{_text(label, PADDING, left)}{_text(text, left + PADDING, right)}</g></svg>"
    )


def _left_box(width: int, corner: int) -> str:
    """Return the outline of the left box, whose left corners are round."""
    if not corner:
        return f"M0 0h{width}v{HEIGHT}H0z"
    down = HEIGHT - 2 * corner
    return (
        f"M{corner} 0H{width}v{HEIGHT}H{corner}a{corner} {corner} 0 0 1-{corner}-{corner}"
        f"v-{down}a{corner} {corner} 0 0 1 {corner}-{corner}z"
    )


def _text(text: str, start: int, box: int) -> str:
    length = box - 2 * PADDING
    return f'<text x="{start}" y="{_BASELINE}" textLength="{length}">{escape(text)}</text>'


def _width(text: str) -> int:
    """Return about how many pixels C{text} takes; readers stretch it to exactly that."""
    return max(round(sum(map(_advance, text))), 1)


def _advance(character: str) -> float:
    if character in _NARROW:
        return 4.2
    if character in _WIDE:
        return 10.3
    if east_asian_width(character) in "WF":
        return float(_SIZE)
    return 7.6 if character.isupper() else 6.8


def _plain(text: str) -> str:
    """Return C{text} without what XML cannot hold."""
    kept = text.encode("utf-8", "replace").decode("utf-8")
    return "".join(each for each in kept if each >= " " and each not in "\ufffe\uffff")
