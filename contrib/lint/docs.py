"""
Checks the documentation: links, pages, news fragments, and words that do not belong.

Every relative link of a Markdown file leads to a file that is there, and to a heading if it names
one.  Every page of docs/ can be reached from docs/index.md.  Every page that a module names exists,
and has the headings that a docstring quotes after it; of tests, which make up pages, only
docstrings are read.  News fragments are named as docs/changes/README.md says.  Nothing is left for
later.

Usage: python contrib/lint/docs.py [ROOT].  Exit status 1 if something is wrong, a line each.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_PAGE = re.compile(r"\bdocs/[\w/-]+\.md\b")
_QUOTED = re.compile(r'\b(docs/[\w/-]+\.md)((?:,? (?:and )?"[^"]+")+)')
_HEADING = re.compile(r"^#+ +(.*?) *#*$", re.MULTILINE)
_FRAGMENT = re.compile(r"[a-z0-9-]+\.(feature|change|fix|removal)\.md")
_LATER = re.compile(r"\b(TODO|FIXME|XXX)\b")
_SKIPPED = {".git", ".tox", ".venv", "build", "dist", "node_modules", "vectors"}


def files(root: Path, suffix: str) -> Iterator[Path]:
    """Yield the files of the repository that end in C{suffix}."""
    for path in sorted(root.rglob(f"*{suffix}")):
        parts = path.relative_to(root).parts
        if not any(part in _SKIPPED or part.startswith("_trial_temp") for part in parts):
            yield path


def anchors(text: str) -> set[str]:
    """Return what a link may name after # in a page with C{text}, as GitHub makes it."""
    found = set()
    for heading in _HEADING.findall(_FENCE.sub("", text)):
        words = re.sub(r"[^\w\- ]", "", heading.lower())
        found.add(words.strip().replace(" ", "-"))
    return found


def headings(text: str) -> set[str]:
    """Return the headings of a page with C{text} as a docstring quotes them."""
    return {found.replace("`", "") for found in _HEADING.findall(_FENCE.sub("", text))}


def links(page: Path) -> Iterator[tuple[str, str]]:
    """Yield (file, anchor) of each relative link in C{page}; file is empty for the page itself."""
    for target in _LINK.findall(_FENCE.sub("", page.read_text(encoding="utf-8"))):
        if not re.match(r"[a-z]+:", target):
            file, _, anchor = target.partition("#")
            yield file, anchor


def check(root: Path) -> Iterator[str]:
    """Yield a line for each thing that is wrong."""
    for page in files(root, ".md"):
        yield from _links(root, page)
    yield from _unreachable(root)
    for fragment in sorted((root / "docs" / "changes").glob("*")):
        if fragment.name != "README.md" and not _FRAGMENT.fullmatch(fragment.name):
            yield f"{fragment.relative_to(root)}: not named TOPIC.KIND.md"
    for module in files(root, ".py"):
        yield from _module(root, module)


def _links(root: Path, page: Path) -> Iterator[str]:
    for file, anchor in links(page):
        target = (page.parent / file) if file else page
        if not target.exists():
            yield f"{page.relative_to(root)}: no such file: {file}"
        elif anchor and anchor not in anchors(target.read_text(encoding="utf-8")):
            yield f"{page.relative_to(root)}: {file} has no heading for #{anchor}"


def _unreachable(root: Path) -> Iterator[str]:
    index = (root / "docs" / "index.md").resolve()
    seen: set[Path] = set()
    waiting = [index]
    while waiting:
        page = waiting.pop()
        if page in seen or not page.exists():
            continue
        seen.add(page)
        waiting.extend(
            (page.parent / file).resolve() for file, _ in links(page) if file.endswith(".md")
        )
    for page in sorted((root / "docs").glob("*.md")):
        if page.resolve() not in seen:
            yield f"{page.relative_to(root)}: cannot be reached from docs/index.md"


def _module(root: Path, module: Path) -> Iterator[str]:
    text = module.read_text(encoding="utf-8")
    name = module.relative_to(root)
    tests = name.parts[0] == "tests"
    for page in sorted(set(_PAGE.findall(_docstrings(text) if tests else text))):
        if not (root / page).exists():
            yield f"{name}: no such page: {page}"
    for page, quoted in _QUOTED.findall(" ".join(_docstrings(text).split())):
        if (root / page).exists():
            there = headings((root / page).read_text(encoding="utf-8"))
            for heading in re.findall(r'"([^"]+)"', quoted):
                if heading not in there:
                    yield f"{name}: {page} has no heading {heading!r}"
    if not tests and module.resolve() != Path(__file__).resolve():
        for number, line in enumerate(text.splitlines(), 1):
            if _LATER.search(line):
                yield f"{name}:{number}: left for later"


def _docstrings(text: str) -> str:
    """Return what the module with this text says of itself and of what it defines."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, kinds)]
    return "\n".join(ast.get_docstring(node) or "" for node in nodes)


def main(argv: list[str]) -> int:
    """Print what is wrong; 1 if anything is."""
    root = Path(argv[0]) if argv else Path(__file__).resolve().parents[2]
    wrong = list(check(root))
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
