"""Licence notices of everything that is installed along with cronstable."""

from __future__ import annotations

import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[([^\]]*)\])?([^;]*)(?:;(.*))?")
_EXTRA = re.compile(r"""\bextra\s*==\s*["']([^"']+)["']""")
_NOTICE_FILE = re.compile(r"(licen[cs]e|copying|notice|authors)", re.IGNORECASE)
_RULE = "=" * 78


def notices(find: Callable[[str], Distribution] = distribution) -> Iterator[str]:
    """
    Yield a text for each distribution that cronstable needs and that is installed, by name.

    In a checkout that is not installed, what it needs is unknown: everything installed is told.
    """
    yield "Third-party software that this installation of cronstable uses, and its licences."
    for dist in sorted(_components(find), key=_name_of):
        yield _notice(dist)


def _components(find: Callable[[str], Distribution]) -> list[Distribution]:
    try:
        find("cronstable")
    except PackageNotFoundError:
        return [dist for dist in distributions() if _name_of(dist)]
    found = closure("cronstable", find)
    del found["cronstable"]
    return list(found.values())


def closure(name: str, find: Callable[[str], Distribution]) -> dict[str, Distribution]:
    """Return what C{name} requires, itself included and all the way down, by canonical name."""
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, str]] = set()
    waiting = [(name, "")]
    while waiting:
        name, extra = waiting.pop()
        key = canonical(name)
        if (key, extra) in seen:
            continue
        seen.add((key, extra))
        try:
            dist = found[key] = found.get(key) or find(name)
        except PackageNotFoundError:
            continue  # Its marker said that this platform does not need it.
        for requirement in dist.requires or ():
            waiting.extend(_wanted(requirement, extra))
    return found


def _wanted(requirement: str, extra: str) -> list[tuple[str, str]]:
    """Return (name, extra) pairs that C{requirement} asks for when C{extra} was chosen."""
    match = _REQUIREMENT.match(requirement)
    if match is None:
        return []
    name, extras, _, marker = match.groups()
    needs = [canonical(each) for each in _EXTRA.findall(marker or "")]
    if needs and (not extra or canonical(extra) not in needs):
        return []
    chosen = [each.strip() for each in (extras or "").split(",") if each.strip()]
    return [(name, ""), *((name, each) for each in chosen)]


def canonical(name: str) -> str:
    """Return the form in which two spellings of one distribution's name are equal."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _name_of(dist: Distribution) -> str:
    return canonical(dist.metadata["Name"] or "")


def _notice(dist: Distribution) -> str:
    facts = dist.metadata
    lines = [_RULE, f"{facts['Name']} {dist.version}", f"Licence: {_licence(dist)}"]
    home = facts["Home-page"] or next(iter(facts.get_all("Project-URL") or ()), None)
    if home:
        lines.append(f"Home: {home}")
    for text in _texts(dist):
        lines += ["", text.strip("\n")]
    return "\n".join([*lines, ""])


def _licence(dist: Distribution) -> str:
    facts = dist.metadata
    if facts["License-Expression"]:
        return facts["License-Expression"]
    named = [
        classifier.rsplit("::", 1)[1].strip()
        for classifier in facts.get_all("Classifier") or ()
        if classifier.startswith("License ::")
    ]
    first_line = (facts["License"] or "").strip().split("\n", 1)[0]
    return "; ".join(named) or first_line or "see its notices"


def _texts(dist: Distribution) -> Iterator[str]:
    """Yield the licence files that the distribution brought along."""
    for file in dist.files or ():
        inside = ".dist-info" in file.parts[0] or ".egg-info" in file.parts[0]
        if inside and _NOTICE_FILE.search(file.name):
            try:
                yield file.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError):
                yield f"({file}: not readable as text)"
