"""Tests for the assembled page: one document, a policy that fits it, bytes and headers."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from collections.abc import Callable
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from cronstable.web import dashboard
from cronstable.web.dashboard import Dashboard, PageError, assemble, collect

PAGE = Path(dashboard.__file__).parent / "page"

SHELL = """<html><head>
<link rel="stylesheet" href="a.css">
</head><body>
<script type="module" src="main.js"></script>
</body></html>
"""


def source_of(files: dict[str, str]) -> Callable[[str], str]:
    """Return a reader of made-up sources."""
    return {"index.html": SHELL, "a.css": "/* why */\nb { color: red; }\n", **files}.__getitem__


class AssembleTests(SynchronousTestCase):
    """L{assemble} makes one document out of small sources."""

    def test_modules_keep_their_names_to_themselves(self) -> None:
        """Each module is a scope of its own, after what it imports; only exports are seen."""
        document, _ = assemble(
            source_of(
                {
                    "main.js": 'import { f as g } from "./x/one.js";\nconst own = g();\n',
                    "x/one.js": 'import { k } from "../two.js";\nconst own = k;\n'
                    "export function f() { return own; }\n",
                    "two.js": "export const k = 1;\n",
                }
            )
        )
        script = re.search(r"<script[^>]*>(.*)</script>", document, re.DOTALL)
        assert script is not None
        self.assertEqual(
            script.group(1),
            (
                "const $two = (() => {\nconst k = 1;\nreturn { k };\n})();\n"
                "const $x_one = (() => {\nconst { k } = $two;\nconst own = k;\n"
                "function f() { return own; }\nreturn { f };\n})();\n"
                "const $main = (() => {\nconst { f: g } = $x_one;\nconst own = g();\n"
                "return {  };\n})();"
            ),
        )

    def test_nothing_is_loaded_from_elsewhere(self) -> None:
        """Links to style sheets and the module script are replaced by their text."""
        document, _ = assemble(source_of({"main.js": "go();\n"}))
        self.assertNotIn("<link", document)
        self.assertNotIn("src=", document)
        self.assertIn("<style>b { color: red; }\n</style>", document)

    def test_policy_admits_exactly_the_inline_elements(self) -> None:
        """The hashes of the policy are those of the document's own script and style."""
        document, policy = assemble(source_of({"main.js": "go();\n"}))
        for tag, directive in (("script", "script-src"), ("style", "style-src")):
            found = re.search(rf"<{tag}[^>]*>(.*?)</{tag}>", document, re.DOTALL)
            assert found is not None
            digest = base64.b64encode(hashlib.sha256(found.group(1).encode()).digest()).decode()
            self.assertIn(f"{directive} 'sha256-{digest}'", policy)
        self.assertNotIn("unsafe", policy)
        for closed in ("base-uri", "form-action", "frame-ancestors", "object-src"):
            self.assertIn(f"{closed} 'none'", policy)

    def test_circle_is_refused(self) -> None:
        """Modules that import one another in a circle are named."""
        error = self.assertRaises(
            PageError,
            assemble,
            source_of(
                {
                    "main.js": 'import { a } from "./a.js";\n',
                    "a.js": 'import { b } from "./b.js";\nexport const a = b;\n',
                    "b.js": 'import { a } from "./a.js";\nexport const b = a;\n',
                }
            ),
        )
        self.assertIn("a.js", str(error))
        self.assertIn("circle", str(error))

    def test_forms_that_are_not_understood_are_refused(self) -> None:
        """An import or export in another form is an error, not a broken page."""
        for text in (
            'import x from "./a.js";',
            'import "./a.js";',
            "export default 1;",
            "export let a = 1;",
            'import { a } from "elsewhere";',
            "export { a };",
        ):
            error = self.assertRaises(
                PageError, assemble, source_of({"main.js": text + "\n", "a.js": ""})
            )
            self.assertIn("main.js", str(error))

    def test_import_outside_the_page_is_refused(self) -> None:
        """A path cannot leave the page directory."""
        self.assertRaises(
            PageError, collect, "main.js", source_of({"main.js": 'import { a } from "../a.js";\n'})
        )

    def test_text_that_would_end_its_element_is_refused(self) -> None:
        """A source that holds the end of the script element cannot be inlined."""
        self.assertRaises(PageError, assemble, source_of({"main.js": 'const a = "</SCRIPT>";\n'}))


class DashboardTests(SynchronousTestCase):
    """L{Dashboard} sends the page that is installed."""

    def test_headers(self) -> None:
        """The page comes with its policy, is never framed or sniffed, and is always asked for."""
        headers, body = Dashboard.load().document()
        self.assertEqual(headers["Content-Type"], "text/html; charset=utf-8")
        self.assertEqual(headers["Cache-Control"], "no-cache")
        self.assertEqual(headers["Vary"], "Accept-Encoding")
        self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
        self.assertEqual(headers["X-Frame-Options"], "DENY")
        self.assertEqual(headers["Referrer-Policy"], "no-referrer")
        self.assertIn("default-src 'self'", headers["Content-Security-Policy"])
        self.assertNotIn("Content-Encoding", headers)
        self.assertTrue(body.startswith(b"<!doctype html>"))

    def test_gzip_is_the_same_page(self) -> None:
        """A client that takes gzip gets the same bytes, compressed, under the same tag."""
        page = Dashboard.load()
        plain_headers, plain = page.document(False)
        headers, body = page.document(True)
        self.assertEqual(headers["Content-Encoding"], "gzip")
        self.assertEqual(gzip.decompress(body), plain)
        self.assertEqual(headers["ETag"], plain_headers["ETag"])
        self.assertLess(len(body), len(plain) / 3)

    def test_tag_follows_the_content(self) -> None:
        """The tag is the same for the same page and another for another."""
        self.assertEqual(Dashboard.load().etag, Dashboard.load().etag)
        self.assertNotEqual(Dashboard(b"a", "").etag, Dashboard(b"b", "").etag)
        self.assertRegex(Dashboard(b"a", "").etag, r'^"[0-9a-f]{32}"$')

    def test_size(self) -> None:
        """The whole page stays under its budget of 300 KB."""
        self.assertLess(len(Dashboard.load().html), 300_000)


class SourceTests(SynchronousTestCase):
    """Rules that every source of the page keeps."""

    def sources(self, suffix: str) -> dict[str, str]:
        """Return the text of each source with a suffix, by path."""
        found = {str(p.relative_to(PAGE)): p.read_text("utf-8") for p in PAGE.rglob(f"*{suffix}")}
        self.assertTrue(found)
        return found

    def test_text_never_becomes_markup(self) -> None:
        """No source uses an interface that parses markup or runs text."""
        for path, text in self.sources(".js").items():
            for word in (
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "new Function",
                "DOMParser",
                "createContextualFragment",
                "srcdoc",
            ):
                self.assertNotIn(word, text, path)

    def test_every_module_is_used(self) -> None:
        """Each module is reached from the entry, each style sheet from the shell."""
        modules = collect("main.js", lambda path: (PAGE / path).read_text("utf-8"))
        self.assertEqual(set(modules.sources), set(self.sources(".js")))
        shell = (PAGE / "index.html").read_text("utf-8")
        for path in self.sources(".css"):
            self.assertIn(f'href="{path}"', shell)

    def test_squeezing_is_safe(self) -> None:
        """No text of a module spans lines, so dropping indentation changes no string."""
        for path, text in self.sources(".js").items():
            for number, line in enumerate(text.splitlines(), 1):
                self.assertEqual(line.replace("\\`", "").count("`") % 2, 0, f"{path}:{number}")

    def test_files_stay_small(self) -> None:
        """No module outgrows what one can hold in one's head."""
        for path, text in self.sources(".js").items():
            self.assertLess(len(text.splitlines()), 350, path)

    def test_imports_name_what_exists(self) -> None:
        """Each imported name is exported by the module it is imported from, and is used."""
        exported = {
            path: set(
                re.findall(
                    r"^export (?:const|(?:async )?function\*?|class) ([\w$]+)", text, re.MULTILINE
                )
            )
            for path, text in self.sources(".js").items()
        }
        for path, text in self.sources(".js").items():
            for names, target in re.findall(
                r'^import \{([^}]*)\} from "([^"]+)";', text, re.MULTILINE
            ):
                where = str(
                    (PAGE / path).parent.joinpath(target).resolve().relative_to(PAGE.resolve())
                )
                for name in filter(None, (part.strip() for part in names.split(","))):
                    source, _, local = name.partition(" as ")
                    self.assertIn(source, exported[where], f"{path} imports {source}")
                    uses = re.findall(rf"\b{re.escape(local or source)}\b", text)
                    self.assertGreater(len(uses), 1, f"{path} does not use {local or source}")
