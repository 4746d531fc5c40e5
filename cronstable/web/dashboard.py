"""
The dashboard as one self-contained HTML document, put together from the files in C{page/}.

The sources run in a browser as they are; assembling only saves the requests and lets one strict
policy cover everything.  docs/dashboard.md specifies the document and its headers.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from collections.abc import Callable, Mapping
from importlib import resources

import attrs

ReadSource = Callable[[str], str]

_STYLE_LINK = re.compile(r'^ *<link rel="stylesheet" href="([\w./-]+)" ?/?>\n', re.MULTILINE)
_ENTRY_SCRIPT = re.compile(r'^ *<script type="module" src="([\w./-]+)"></script>\n', re.MULTILINE)
_IMPORT = re.compile(r'^import \{([^}]*)\} from "(\.[\w./-]+\.js)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:const|function|class)\b)", re.MULTILINE)
_EXPORTED = re.compile(
    r"^export (?:const|(?:async )?function\*?|class) ([A-Za-z_$][\w$]*)", re.MULTILINE
)
_STYLE_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_LEFT_OVER = re.compile(r"^(?:import|export)\b.*$", re.MULTILINE)


class PageError(Exception):
    """A source of the page cannot be assembled; the text names the file and the reason."""


@attrs.frozen
class Modules:
    """ES modules in an order in which each one comes after all that it imports."""

    sources: Mapping[str, str]

    def script(self) -> str:
        """Return one script with a function scope for each module; the last one is the entry."""
        return "\n".join(_wrapped(path, text) for path, text in self.sources.items())


def assemble(read: ReadSource) -> tuple[str, str]:
    """
    Build the document from C{index.html} and whatever it and its modules name.

    C{read} returns the text of a source by its path below the page directory.  Returns the
    document and the Content-Security-Policy that permits exactly its own script and style.
    """
    shell = read("index.html")
    style = "".join(squeeze_style(read(path)) for path in _STYLE_LINK.findall(shell))
    entries = _ENTRY_SCRIPT.findall(shell)
    if len(entries) != 1:
        raise PageError("index.html: exactly one module script is needed")
    script = collect(entries[0], read).script()
    for text, closing in ((script, "</script"), (style, "</style")):
        if closing in text.lower():
            raise PageError(f"a source holds {closing!r}, which would end its element")
    shell = _ENTRY_SCRIPT.sub("", _STYLE_LINK.sub("", shell))
    head, mark, rest = shell.partition("</head>")
    body, end, tail = rest.rpartition("</body>")
    if not mark or not end:
        raise PageError("index.html: needs </head> and </body>")
    document = (
        f"{head}<style>{style}</style>\n{mark}{body}"
        f'<script type="module">{script}</script>\n{end}{tail}'
    )
    return document, content_security_policy(script, style)


def collect(entry: str, read: ReadSource) -> Modules:
    """Follow the imports of C{entry} and order its modules; a cycle is a L{PageError}."""
    done: dict[str, str] = {}
    open_paths: list[str] = []

    def visit(path: str) -> None:
        if path in done:
            return
        if path in open_paths:
            raise PageError(f"{path}: imported in a circle: {' > '.join(open_paths)}")
        open_paths.append(path)
        text = squeeze_script(read(path))
        for _names, target in _IMPORT.findall(text):
            visit(_resolve(path, target))
        open_paths.pop()
        done[path] = text

    visit(entry)
    return Modules(done)


def squeeze_script(text: str) -> str:
    """Drop indentation, blank lines and lines that are only a comment; the rest stays as it is."""
    lines = (line.strip() for line in text.splitlines())
    return "".join(f"{line}\n" for line in lines if line and not line.startswith("//"))


def squeeze_style(text: str) -> str:
    """Drop indentation, blank lines and comments of a style sheet."""
    lines = (line.strip() for line in _STYLE_COMMENT.sub("", text).splitlines())
    return "".join(f"{line}\n" for line in lines if line)


def content_security_policy(script: str, style: str) -> str:
    """Return a policy under which only this script and this style run, and only to this origin."""
    return "; ".join(
        (
            "default-src 'self'",
            f"script-src 'sha256-{_digest(script)}'",
            f"style-src 'sha256-{_digest(style)}'",
            "img-src 'self' data:",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
            "object-src 'none'",
        )
    )


@attrs.define
class Dashboard:
    """The assembled page with what an HTTP server needs to send it."""

    html: bytes
    policy: str
    etag: str = attrs.field(init=False)
    _compressed: bytes | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.etag = f'"{hashlib.sha256(self.html).hexdigest()[:32]}"'

    @classmethod
    def load(cls) -> Dashboard:
        """Assemble the page from the sources that are installed with the package."""
        page = resources.files("cronstable.web") / "page"
        document, policy = assemble(lambda path: (page / path).read_text(encoding="utf-8"))
        return cls(document.encode("utf-8"), policy)

    def document(self, accept_gzip: bool = False) -> tuple[dict[str, str], bytes]:
        """Return headers and body of C{GET /}, compressed when the client takes gzip."""
        headers = {
            "Content-Type": "text/html; charset=utf-8",
            "ETag": self.etag,
            "Cache-Control": "no-cache",
            "Vary": "Accept-Encoding",
            "Content-Security-Policy": self.policy,
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
            "Referrer-Policy": "no-referrer",
        }
        if not accept_gzip:
            return headers, self.html
        if self._compressed is None:
            self._compressed = gzip.compress(self.html, compresslevel=6, mtime=0)
        return {**headers, "Content-Encoding": "gzip"}, self._compressed


def _wrapped(path: str, text: str) -> str:
    """Turn a module into a constant that holds its exports, made in a scope of its own."""
    exports = ", ".join(_EXPORTED.findall(text))
    inner = _IMPORT.sub(lambda found: _binding(path, found), text)
    inner = _EXPORT.sub("", inner)
    left_over = _LEFT_OVER.search(inner)
    if left_over is not None:
        raise PageError(f"{path}: this form is not supported: {left_over.group(0)!r}")
    return f"const {_variable(path)} = (() => {{\n{inner}return {{ {exports} }};\n}})();"


def _binding(path: str, found: re.Match[str]) -> str:
    """Return the declaration that stands in for one import line of the module at C{path}."""
    names = found.group(1).replace(" as ", ": ")
    return f"const {{{names}}} = {_variable(_resolve(path, found.group(2)))};"


def _resolve(importer: str, target: str) -> str:
    """Return the path below the page directory that C{importer} means by C{target}."""
    parts = importer.split("/")[:-1]
    for step in target.split("/"):
        if step == "..":
            if not parts:
                raise PageError(f"{importer}: {target!r} leaves the page directory")
            parts.pop()
        elif step != ".":
            parts.append(step)
    return "/".join(parts)


def _variable(path: str) -> str:
    """Return the constant that holds the exports of the module at C{path}."""
    return "$" + re.sub(r"\W", "_", path.removesuffix(".js"))


def _digest(text: str) -> str:
    """Return the hash of an inline element's text as a policy spells it."""
    return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
