"""The C{state} and C{pools} sections."""

from __future__ import annotations

import os

from cronstable.config.sections_values import JobApiConfig, PoolConfig, StateConfig, TlsFiles
from tests.config.helpers import STATE, ConfigCase, section


def job_api(*lines: str) -> str:
    """Return a C{state} section with C{lines} under C{jobApi}."""
    indented = "\n".join(f"  {line}" for text in lines for line in text.split("\n"))
    return section("state", "path: x", "jobApi:", indented)


class StateTests(ConfigCase):
    """Tests for C{state}."""

    def state(self, *lines: str) -> StateConfig:
        """Return the section with C{lines}."""
        found = self.config(section("state", *lines)).state
        assert found is not None
        return found

    def test_path(self) -> None:
        """The path becomes absolute; C{~} is the daemon's home."""
        self.environ = {"HOME": "/home/cron"}
        self.assertEqual(self.state("path: x"), StateConfig(os.path.join(self.directory, "x")))
        self.assertEqual(self.state("path: ~/x").path, "/home/cron/x")
        for written in ("", "' '"):
            self.assert_refused(section("state", f"path: {written}"), "state.path: must name")
        self.assert_refused(section("state", "topology: auto"), "state.path: required")

    def test_values(self) -> None:
        """Every key goes to its field."""
        for line, field, value in (
            ("topology: shared", "topology", "shared"),
            ("deploymentId: x/y", "deployment_id", "x/y"),
            ("deploymentId:", "deployment_id", None),
            ("maxRunsPerJob: -1", "max_runs_per_job", -1),
            ("onStoreUnavailable: fail-closed", "on_store_unavailable", "fail-closed"),
            ("gcGraceSeconds: 0", "gc_grace", 0),
            ("gcGraceSeconds: -5", "gc_grace", -5),
            ("gcGraceSeconds: 86400", "gc_grace", 86400),
            ("maxOpsPerSecond: 0.5", "max_ops_per_second", 0.5),
            ("slotTtlSeconds: 5", "slot_ttl", 5.0),
            ("fsync: never", "fsync", "never"),
        ):
            self.assertEqual(getattr(self.state("path: x", line), field), value, line)

    def test_ranges(self) -> None:
        """Values out of range are told with the range."""
        for line, said in (
            ("gcGraceSeconds: 3600", "gcGraceSeconds: out of range, got 3600; at least 86400"),
            ("gcGraceSeconds: 1", "gcGraceSeconds"),
            ("slotTtlSeconds: 4", "slotTtlSeconds: out of range, got 4.0; finite and at least 5"),
            ("slotTtlSeconds: inf", "slotTtlSeconds"),
            ("maxOpsPerSecond: -1", "maxOpsPerSecond"),
            ("maxOpsPerSecond: nan", "maxOpsPerSecond"),
            ("fsync: sometimes", "fsync: unknown value"),
        ):
            self.assert_refused(section("state", "path: x", line), f"state.{said}")


class JobApiTests(ConfigCase):
    """Tests for C{state.jobApi}."""

    def job_api(self, *lines: str) -> JobApiConfig:
        """Return the section with C{lines}."""
        found = self.config(job_api(*lines)).state
        assert found is not None
        return found.job_api

    def test_values(self) -> None:
        """Every key goes to its field."""
        self.assertEqual(
            self.job_api(
                "enabled: no\nlisten: '127.0.0.1:0'\nmaxValueBytes: 0\nmaxArtifactBytes: 1\n"
                "lockTtlSeconds: 5\nallowNonLoopbackBind: yes"
            ),
            JobApiConfig(False, "127.0.0.1:0", 0, 1, 5.0, True),
        )
        self.assertIs(self.job_api("listen:").listen, None)

    def test_ranges(self) -> None:
        """Values out of range are told with the range."""
        for line in ("maxValueBytes: -1", "maxArtifactBytes: -1", "lockTtlSeconds: 4.5"):
            key = line.split(":")[0]
            self.assert_refused(job_api(line), f"state.jobApi.{key}: out of range")

    def test_loopback(self) -> None:
        """An address of this host may be bare or a URL, with a port or without."""
        for address in (
            "127.0.0.1",
            "127.0.0.1:9000",
            "localhost",
            "localhost:0",
            "[::1]:9",
            "[::1]",
            "http://127.0.0.1",
            "http://[::1]:9000",
        ):
            self.assertEqual(self.job_api(f"listen: '{address}'").listen, address)

    def test_bad_addresses(self) -> None:
        """Other schemes, ports out of range and bare IPv6 are refused."""
        for address in (
            "unix:///x",
            "ftp://127.0.0.1:1",
            "127.0.0.1:65536",
            "::1",
            ":9",
            "a:b",
            "http://[::1",
        ):
            self.assert_refused(job_api(f"listen: '{address}'"), "state.jobApi.listen: ", address)

    def test_userinfo(self) -> None:
        """A user and password in an address are not told, with a scheme or without."""
        for address in ("u:hunter2@h:x", "http://u:hunter2@h:x", "u:hunter2@10.0.0.1:5"):
            text = job_api(f"listen: '{address}'") + section(
                "cluster",
                f"listen: '{address}'",
                "tls: {ca: a, cert: b, key: c}",
                f"peers: [{{host: '{address}'}}]",
            )
            said = "".join(str(each) for each in self.problems(text))
            self.assertIn("***@", said)
            self.assertNotIn("hunter2", said)

    def test_beyond_this_host(self) -> None:
        """An address that others reach must be asked for; without TLS it is said each time."""
        for address in ("http://10.0.0.5:9000", "10.0.0.5:9", "0.0.0.0", "[::]:9", "host:9"):
            text = job_api(f"listen: '{address}'")
            self.assert_refused(text, "state.jobApi.listen: ", "allowNonLoopbackBind", address)
            asked = job_api(f"listen: '{address}'", "allowNonLoopbackBind: yes")
            self.assert_notices(asked, "without TLS")

    def test_tls(self) -> None:
        """Certificate, key and an https address that a certificate can cover go together."""
        files = "tls: {cert: c, key: k, ca: a}"
        found = self.job_api("listen: 'https://127.0.0.1:9'", files)
        self.assertEqual(found.tls, TlsFiles("c", "k", "a"))
        secure = "listen: 'https://127.0.0.1:9'"
        for lines, said in (
            (("tls: {cert: c}",), "jobApi.tls.key: required"),
            (("enabled: no", "tls: {key: k}"), "jobApi.tls.cert: required"),
            (("tls: {ca: a}",), "jobApi.tls: would protect nothing"),
            ((files,), "jobApi.tls: would protect nothing"),
            ((secure,), "jobApi.tls: required, with cert and key"),
            ((secure, "tls: {ca: a}"), "jobApi.tls: required, with cert and key"),
            (
                ("listen: 'https://0.0.0.0:9'", "allowNonLoopbackBind: yes", files),
                "jobApi.listen: no certificate covers every address",
            ),
        ):
            self.assert_refused(job_api(*lines), f"state.{said}")
        asked = ("listen: 'https://10.0.0.5:9'", "allowNonLoopbackBind: yes", files)
        self.assert_notices(job_api(*asked))


class PoolTests(ConfigCase):
    """Tests for C{pools}."""

    def test_values(self) -> None:
        """A pool has slots and room for those who wait."""
        found = self.config(
            STATE + section("pools", "p: {slots: 10000}\nq: {slots: 1, maxQueued: 1}")
        )
        self.assertEqual(found.pools, {"p": PoolConfig("p", 10000), "q": PoolConfig("q", 1, 1)})

    def test_ranges(self) -> None:
        """Both are numbers from 1 to 10000."""
        for line, key in (
            ("slots: 0", "slots"),
            ("slots: 10001", "slots"),
            ("slots: 1, maxQueued: 0", "maxQueued"),
            ("slots: 1, maxQueued: 10001", "maxQueued"),
        ):
            text = STATE + section("pools", f"p: {{{line}}}")
            self.assert_refused(text, f"pools.p.{key}: out of range", "1 to 10000")
        self.assert_refused(
            STATE + section("pools", "p: {maxQueued: 1}"), "pools.p.slots: required"
        )
        self.assert_refused(STATE + section("pools", "p:"), "pools.p: must be a mapping")
