"""The C{web} and C{mcp} sections."""

from __future__ import annotations

from unittest import mock

from cronstable.config.sections_values import (
    Badges,
    Bonjour,
    McpConfig,
    MetricsPage,
    NodeHistory,
    ScopedToken,
    TlsFiles,
    WebConfig,
)
from cronstable.config.values import Secret
from tests.config.helpers import ConfigCase, section

LOCAL = "listen: ['http://127.0.0.1:8080']"
SECURE = "listen: ['https://127.0.0.1:8080']"


def web(*lines: str) -> str:
    """Return a C{web} section that listens on this host."""
    return section("web", LOCAL, *lines)


class WebTests(ConfigCase):
    """Tests for C{web}."""

    def web(self, *lines: str) -> WebConfig:
        """Return the section with C{lines}."""
        found = self.config(section("web", *lines)).web
        assert found is not None
        return found

    def test_defaults(self) -> None:
        """Only C{listen} is required."""
        self.assertEqual(self.web(LOCAL), WebConfig(("http://127.0.0.1:8080",)))
        self.assert_refused(section("web", "ui: yes"), "web.listen: required, but missing")

    def test_values(self) -> None:
        """Every key goes to its field."""
        for line, field, value in (
            ("headers: {X-A: b}", "headers", (("X-A", "b"),)),
            ("allowedOrigins: ['https://x']", "allowed_origins", ("https://x",)),
            ("authToken: {fromEnvVar: T}", "auth_token", Secret(None, None, "T")),
            ("socketMode: '0660'", "socket_mode", "0660"),
            ("ui: no", "ui", False),
            ("metrics: no", "metrics", MetricsPage(False)),
            (
                "metrics: {public: yes, durationBuckets: [1, 2.5]}",
                "metrics",
                MetricsPage(True, True, (1.0, 2.5)),
            ),
            ("nodeHistory: no", "node_history", NodeHistory(False)),
            ("nodeHistory: {interval: 1, points: 10}", "node_history", NodeHistory(True, 1.0, 10)),
            ("badges: no", "badges", Badges(False)),
            ("badges: {public: yes}", "badges", Badges(True, True)),
            ("bonjour: {enabled: no, name: x}", "bonjour", Bonjour(False, "x")),
        ):
            self.assertEqual(getattr(self.web(LOCAL, line), field), value, line)

    def test_tokens(self) -> None:
        """Tokens carry scopes and maybe a label; a blank one counts as configured."""
        found = self.web(
            LOCAL,
            "authTokens:\n- {value: x, scopes: [view, control]}\n"
            "- {fromFile: f, scopes: [approve], label: ops}",
            "anonymousScopes: [view]",
        )
        self.assertEqual(
            found.auth_tokens,
            (
                ScopedToken(Secret("x"), ("view", "control")),
                ScopedToken(Secret(None, "f"), ("approve",), "ops"),
            ),
        )
        self.assertEqual(found.anonymous_scopes, ("view",))
        self.assertTrue(self.web(LOCAL, "authToken: {value: }").authenticated)
        self.assertFalse(self.web(LOCAL).authenticated)

    def test_bad_tokens(self) -> None:
        """A token needs known scopes and a label that is free."""
        for lines, said in (
            ("authTokens: [{value: x}]", "authTokens[0].scopes: required"),
            ("authTokens: [{value: x, scopes: [admin]}]", "authTokens[0].scopes[0]: unknown"),
            ("authTokens: [{value: x, scopes: []}]", "authTokens[0].scopes: must hold"),
            (
                "authTokens: [{value: x, scopes: [view], label: anonymous}]",
                "authTokens[0].label: got 'anonymous'",
            ),
            ("authToken: hunter2", "authToken: must be a mapping with value, fromFile or"),
            ("anonymousScopes: [view]", "anonymousScopes: restricts nothing"),
            ("anonymousScopes: [control]", "anonymousScopes[0]: unknown value"),
        ):
            self.assert_refused(web(lines), f"web.{said}")

    def test_addresses_are_judged_when_served(self) -> None:
        """An address that cannot be served is no error of the configuration."""
        for address in ("ftp://x:1", "http://x", "http://:8080", "", "unix:///run/x.sock", "x"):
            self.assertEqual(self.web(f"listen: ['{address}']").listen, (address,))

    def test_tls(self) -> None:
        """Certificate, key and an https address go together."""
        self.assertEqual(
            self.web(SECURE, "tls: {cert: c, key: k, clientCa: a}").tls, TlsFiles("c", "k", "a")
        )
        self.assertEqual(self.web(LOCAL, "tls: {cert: , key: }").tls, TlsFiles())
        for lines, said in (
            ((LOCAL, "tls: {cert: c}"), "web.tls.key: required"),
            ((LOCAL, "tls: {key: k}"), "web.tls.cert: required"),
            ((SECURE, "tls: {cert: c, key: }"), "web.tls.key: required"),
            ((LOCAL, "tls: {clientCa: a}"), "web.tls.clientCa: needs cert and key"),
            ((LOCAL, "tls: {cert: c, key: k}"), "web.tls: would protect nothing"),
            ((SECURE,), "web.tls: required, with cert and key, to serve https://127.0.0.1:8080"),
        ):
            self.assert_refused(section("web", *lines), said)

    def test_ranges(self) -> None:
        """Intervals, points and buckets have ranges, checked though switched off."""
        for line, said in (
            ("nodeHistory: {interval: 0.5}", "nodeHistory.interval: out of range"),
            ("nodeHistory: {enabled: no, points: 9}", "nodeHistory.points: out of range, got 9"),
            ("nodeHistory: {points: 50001}", "10 to 50000"),
            ("metrics: {durationBuckets: [1, 1]}", "metrics.durationBuckets: got [1.0, 1.0]"),
            ("metrics: {durationBuckets: [2, 1]}", "metrics.durationBuckets"),
            ("metrics: {durationBuckets: [0]}", "metrics.durationBuckets"),
            ("metrics: {enabled: no, durationBuckets: [inf]}", "metrics.durationBuckets"),
            ("metrics: {durationBuckets: [nan]}", "metrics.durationBuckets"),
        ):
            self.assert_refused(web(line), f"web.{said}" if "." in said else said)

    def test_bonjour(self) -> None:
        """Announcing needs its library, and something to announce."""
        with mock.patch("cronstable.config.listeners.find_spec", return_value=None):
            self.assert_refused(web("bonjour: yes"), "web.bonjour: needs the zeroconf library")
            self.assert_refused(web("bonjour: {name: x}"), "web.bonjour: needs the zeroconf")
        with mock.patch("cronstable.config.listeners.find_spec", return_value=object()):
            self.assertEqual(self.web(LOCAL, "bonjour: yes").bonjour, Bonjour(True))
            text = section("web", "listen: ['unix:///x']", "bonjour: yes")
            self.assert_refused(text, "web.bonjour: has nothing to announce")

    def test_header_names(self) -> None:
        """A header that HTTP has no way to write is refused, and its value is not shown."""
        for name in ("'a b'", "''", "'a:'", "\u00e9", '"a\\n"'):
            said = str(self.problem(web(f"headers: {{{name}: s3cret}}")))
            self.assertIn("web.headers.", said)
            self.assertIn("not the name of a header", said)
            self.assertNotIn("s3cret", said)

    def test_any_origin(self) -> None:
        """Switching the check of origins off is said aloud."""
        header = "headers: {access-control-allow-origin: '*'}"
        self.assert_notices(web(header), "a page of any origin")
        self.assert_notices(web("headers: {Access-Control-Allow-Origin: 'https://x'}"))


class McpTests(ConfigCase):
    """Tests for C{mcp}."""

    def mcp(self, *lines: str) -> McpConfig:
        """Return the section with C{lines}, beside a C{web} section."""
        found = self.config(web() + section("mcp", *lines)).mcp
        assert found is not None
        return found

    def test_defaults(self) -> None:
        """A blank section is one of defaults."""
        self.assertEqual(self.config("mcp:\n").mcp, McpConfig())
        self.assertIs(self.config("").mcp, None)

    def test_values(self) -> None:
        """Every key goes to its field."""
        found = self.mcp(
            "enabled: yes\nreadOnly: no\ntoolsets: [act, dags]\nallowedOrigins: [x]\n"
            "allowUnauthenticated: yes\nresources: no\nprompts: no\ninstructions: hi\n"
            "maxRows: 1\nmaxBodyBytes: 2"
        )
        self.assertEqual(
            found, McpConfig(True, False, ("act", "dags"), ("x",), True, False, False, "hi", 1, 2)
        )
        self.assertIs(self.mcp("instructions:").instructions, None)

    def test_ranges(self) -> None:
        """Limits are at least one, though the section is switched off."""
        self.assert_refused(section("mcp", "maxRows: 0"), "mcp.maxRows: out of range, got 0")
        self.assert_refused(section("mcp", "maxBodyBytes: 0"), "mcp.maxBodyBytes")
        self.assert_refused(section("mcp", "toolsets: [x]"), "mcp.toolsets[0]: unknown value")

    def test_suppressed_tools(self) -> None:
        """Tools that act are left out while reading only, and that is said."""
        text = web() + section("mcp", "enabled: yes", "toolsets: [act]")
        self.assert_notices(text, "mcp.toolsets: 'act' is left out")
        self.assert_notices(text + "  readOnly: no\n")

    def test_needs_web(self) -> None:
        """What is enabled needs somewhere to be served."""
        self.assert_refused("mcp: {enabled: yes}\n", "c.yaml:1: mcp.enabled: needs a web section")
        self.config("mcp: {enabled: no}\n")

    def test_open_listeners(self) -> None:
        """Without a token it is not served to a network, unless that is asked for."""
        for address, lines, allowed in (
            ("http://0.0.0.0:1", (), False),
            ("http://[::]:1", (), False),
            ("http://example.org:1", (), False),
            ("http://localhost.:1", (), False),
            ("http://[::ffff:127.0.0.1]:1", (), False),
            ("ftp://0.0.0.0:1", (), False),
            ("http://localhost:1", (), True),
            ("http://LOCALHOST:1", (), True),
            ("http://127.9.9.9:1", (), True),
            ("http://[::1]:1", (), True),
            ("unix:///x", (), True),
            ("http://0.0.0.0:1", ("authToken: {value: x}",), True),
            ("http://0.0.0.0:1", ("authTokens: [{value: x, scopes: [view]}]",), True),
            ("https://0.0.0.0:1", ("tls: {cert: c, key: k}",), False),
            ("https://0.0.0.0:1", ("tls: {cert: c, key: k, clientCa: a}",), True),
        ):
            text = section("web", f"listen: ['{address}']", *lines) + "mcp: {enabled: yes}\n"
            if allowed:
                self.config(text)
            else:
                self.assert_refused(text, "mcp: would be served without a token on", address)
                self.config(text.replace("yes}", "yes, allowUnauthenticated: yes}"))
