"""The C{cluster} section."""

from __future__ import annotations

import os

from cronstable.config.sections_values import (
    ClusterConfig,
    EtcdConfig,
    FilesystemConfig,
    KubernetesConfig,
    MeshConfig,
    TlsFiles,
)
from tests.config.helpers import ConfigCase, section

TLS = "tls: {ca: a, cert: c, key: k}"


def gossip(*lines: str, listen: str = "0.0.0.0:8443", peers: str = "b:8443,c:8443") -> str:
    """Return a gossip cluster of this node and C{peers}."""
    hosts = ", ".join(f"{{host: '{peer}'}}" for peer in peers.split(","))
    return section("cluster", f"listen: '{listen}'", TLS, f"peers: [{hosts}]", *lines)


def lease(backend: str, block: str = "", *lines: str) -> str:
    """Return a cluster with a lease backend."""
    own = (f"{backend}: {{{block}}}",) if block else ()
    return section("cluster", f"backend: {backend}", *own, *lines)


class ClusterCase(ConfigCase):
    """A test case for clusters."""

    def cluster(self, text: str) -> ClusterConfig:
        """Return the section of C{text}."""
        found = self.config(text).cluster
        assert found is not None
        return found

    def refused(self, text: str, said: str) -> None:
        """Assert that C{text} is refused once, about the section."""
        self.assert_refused(text, f"cluster.{said}")


class GossipTests(ClusterCase):
    """Tests for the gossip backend."""

    def test_values(self) -> None:
        """Listener, certificates and peers make a mesh; it elects when asked to."""
        mesh = MeshConfig("0.0.0.0:8443", TlsFiles("c", "k", "a"), ("b:8443", "c:8443"))
        self.assertEqual(self.cluster(gossip()), ClusterConfig(mesh=mesh))
        found = self.cluster(
            gossip(
                "nodeName: n\ninterval: 1\nconnectTimeout: 2\ndriftAfter: 1\nelectLeader: yes\n"
                "distribution: spread\nobservability: {shareNodeStats: no}"
            )
        )
        assert found.mesh is not None
        self.assertEqual(
            (found.elects, found.distribution, found.node_name, found.connect_timeout),
            (True, "spread", "n", 2),
        )
        self.assertFalse(found.share_node_stats)
        self.assertEqual(
            (found.mesh.node_name, found.mesh.interval, found.mesh.drift_after), ("n", 1, 1)
        )

    def test_required(self) -> None:
        """Listener, certificates and peers are required, files and peers not blank."""
        text = section("cluster", "electLeader: no")
        self.assertEqual(
            {each.key for each in self.problems(text)},
            {"cluster.listen", "cluster.tls", "cluster.peers"},
        )
        text = section("cluster", "listen: 'a:1'", "tls: {ca: , cert: c, key: ' '}", "peers: []")
        self.assert_refused(text, "cluster.peers: must hold at least 1 item")
        text = gossip().replace("ca: a", "ca: ").replace("key: k", "key: ' '")
        self.assertEqual(
            [each.key for each in self.problems(text)], ["cluster.tls.ca", "cluster.tls.key"]
        )

    def test_addresses(self) -> None:
        """Addresses are C{host:port}; IPv6 goes in brackets, and its absence gets a hint."""
        for address in ("[2001:db8::1]:8443", "[::]:1", "a.example.org:65535"):
            self.cluster(gossip(listen=address, peers=f"{address},x:1"))
        for address in ("x", "x:", "x:0", "x:65536", ":8443", "x:84a", "[::1]8443", "[x]:1"):
            self.refused(gossip(listen=address), "listen: not ")
            self.refused(gossip(peers=f"y:1,{address}"), "peers[1].host: not ")
        self.refused(gossip(listen="2001:db8::1:8443"), "listen: an IPv6 address needs brackets")

    def test_peers(self) -> None:
        """Repeated peers count once; this node is no peer of its own, and that is said."""
        for listen, peers, left in (
            ("a:1", "b:1,b:1,c:1", ("b:1", "c:1")),
            ("a:1", "a:1,b:1", ("b:1",)),
            ("a:1", "A:1,b:1", ("A:1", "b:1")),
            ("0.0.0.0:1", "127.0.0.5:1,b:1", ("b:1",)),
            ("0.0.0.0:1", "127.0.0.5:2,b:1", ("127.0.0.5:2", "b:1")),
            ("0.0.0.0:1", "localhost:1", ("localhost:1",)),
            ("0.0.0.0:1", "[::1]:1", ("[::1]:1",)),
            ("[::]:1", "[::1]:1,127.0.0.1:1", ("127.0.0.1:1",)),
            ("127.0.0.1:1", "127.0.0.2:1", ("127.0.0.2:1",)),
            ("a:1", "a:1", ()),
        ):
            text = gossip(listen=listen, peers=peers)
            found = self.cluster(text)
            assert found.mesh is not None
            self.assertEqual(found.mesh.peers, left)
            dropped = len(set(peers.split(","))) - len(left)
            self.assert_notices(text, *["is this node itself"] * dropped)

    def test_size(self) -> None:
        """Two nodes do not elect; an even number is said to be no better than one less."""
        elect = "electLeader: yes"
        for peers in ("b:1", "b:1,b:1", "b:1,127.0.0.1:8443"):
            self.refused(gossip(elect, peers=peers), "electLeader: two nodes cannot elect")
            self.cluster(gossip(peers=peers))
        self.assert_notices(gossip(elect))
        self.assert_notices(gossip(elect, peers="b:1,c:1,d:1"), "4 nodes outlive no more")

    def test_ranges(self) -> None:
        """Intervals are whole numbers above zero."""
        for key in ("interval", "connectTimeout", "driftAfter"):
            self.refused(gossip(f"{key}: 0"), f"{key}: out of range, got 0")
        self.refused(gossip("interval: 1.5"), "interval: must be a whole number")

    def test_inert_distribution(self) -> None:
        """Spreading without an election is said to do nothing."""
        self.assert_notices(gossip("distribution: spread"), "no effect without electLeader")

    def test_foreign_blocks(self) -> None:
        """A store's block, or the keys of a second mesh, have no place here."""
        self.refused(gossip("etcd: {ttl: 15}"), "etcd: belongs to backend etcd")
        self.refused(gossip("observability: {interval: 4}"), "observability.interval: belongs to")


class LeaseTests(ClusterCase):
    """Tests for what the lease backends share."""

    def test_defaults(self) -> None:
        """They always elect; two of them need no more than their name."""
        self.assertEqual(
            self.cluster(lease("kubernetes")),
            ClusterConfig("kubernetes", True, kubernetes=KubernetesConfig()),
        )
        self.assertEqual(
            self.cluster(lease("etcd")), ClusterConfig("etcd", True, etcd=EtcdConfig())
        )
        self.refused(lease("filesystem"), "filesystem.path: required")

    def test_inert_keys(self) -> None:
        """Keys of the gossip backend are said to do nothing, whatever their values."""
        text = lease("filesystem", "path: x", "listen: bad", "interval: 0", "peers: [{host: x}]")
        self.assert_notices(text, "listen, peers, interval belong to the gossip backend")
        text = lease("filesystem", "path: x", "electLeader: no")
        self.assert_notices(text, "always elects")
        self.assert_notices(lease("filesystem", "path: x", "electLeader: yes"))

    def test_shared_keys(self) -> None:
        """The node's name and the connect timeout count."""
        found = self.cluster(lease("etcd", "", "nodeName: n", "connectTimeout: 3"))
        self.assertEqual((found.node_name, found.connect_timeout), ("n", 3))
        self.refused(lease("etcd", "", "connectTimeout: 0"), "connectTimeout: out of range")

    def test_spread(self) -> None:
        """One holder cannot spread."""
        self.refused(lease("etcd", "", "distribution: spread"), "distribution: spread needs")

    def test_foreign_blocks(self) -> None:
        """The block of another store is refused."""
        self.refused(lease("etcd", "", "kubernetes: {}"), "kubernetes: belongs to backend kube")

    def test_observability(self) -> None:
        """A mesh for statistics is a whole one beside the lease."""
        whole = f"listen: '0.0.0.0:1', {TLS}, peers: [{{host: 'b:1'}}]"
        found = self.cluster(
            lease("etcd", "", f"observability: {{{whole}, shareNodeStats: no, nodeName: n}}")
        )
        self.assertEqual(
            found.observability,
            MeshConfig("0.0.0.0:1", TlsFiles("c", "k", "a"), ("b:1",), "n"),
        )
        self.assertFalse(found.share_node_stats)
        problems = self.problems(lease("etcd", "", "observability: {shareNodeStats: no}"))
        self.assertEqual(
            {each.key for each in problems},
            {f"cluster.observability.{key}" for key in ("listen", "tls", "peers")},
        )
        self.refused(
            lease("etcd", "", f"observability: {{{whole}, interval: 0}}"),
            "observability.interval: out of range",
        )


class KubernetesTests(ClusterCase):
    """Tests for C{cluster.kubernetes}."""

    def test_values(self) -> None:
        """Every key goes to its field."""
        found = self.cluster(
            lease(
                "kubernetes",
                "leaseName: l.x, leaseNamespace: n, leaseDurationSeconds: 30, "
                "renewDeadlineSeconds: 20, retryPeriodSeconds: 5, identity: i, kubeconfig: k, "
                "apiServer: 'https://a', clientLibrary: http",
            )
        )
        self.assertEqual(
            found.kubernetes, KubernetesConfig("l.x", "n", 30, 20, 5, "i", "k", "https://a", "http")
        )
        blank = "leaseNamespace: , identity: , kubeconfig: , apiServer: "
        self.assertEqual(self.cluster(lease("kubernetes", blank)).kubernetes, KubernetesConfig())

    def test_checks(self) -> None:
        """Names follow RFC 1123, times follow each other, the server is https."""
        for block, said in (
            ("leaseName: A_b", "leaseName: not an RFC 1123 name"),
            ("leaseName: ", "leaseName: not an RFC 1123 name"),
            (f"leaseName: {'a' * 254}", "leaseName: not an RFC 1123 name"),
            ("leaseNamespace: a.b", "leaseNamespace: not an RFC 1123 label"),
            (f"leaseNamespace: {'a' * 64}", "leaseNamespace: not an RFC 1123 label"),
            ("apiServer: 'http://x'", "apiServer: must be an https:// URL"),
            ("retryPeriodSeconds: 0", "retryPeriodSeconds: out of range"),
            ("renewDeadlineSeconds: 2", "retryPeriodSeconds: got 2; less than"),
            ("leaseDurationSeconds: 10", "leaseDurationSeconds: got 10; more than"),
            ("leaseDurationSeconds: 12", "leaseDurationSeconds: got 12; more than"),
            ("clientLibrary: x", "clientLibrary: unknown value"),
        ):
            self.refused(lease("kubernetes", block), f"kubernetes.{said}")


class EtcdTests(ClusterCase):
    """Tests for C{cluster.etcd}."""

    environ = {"PASSWORD": "sesame", "EMPTY": ""}

    def etcd(self, block: str) -> EtcdConfig:
        """Return the store's block."""
        found = self.cluster(lease("etcd", block)).etcd
        assert found is not None
        return found

    def test_values(self) -> None:
        """Every key goes to its field."""
        found = self.etcd(
            "endpoints: ['https://a:1', 'https://b'], electionName: e, ttl: 30, username: u, "
            "password: {value: p}, tls: {ca: a, cert: c, key: k}"
        )
        self.assertEqual(
            found,
            EtcdConfig(("https://a:1", "https://b"), "e", 30, "u", "p", TlsFiles("c", "k", "a")),
        )

    def test_password(self) -> None:
        """The password is resolved at load; its file is a source of the configuration."""
        secure = "endpoints: ['https://a'], username: u, password"
        self.assertEqual(self.etcd(f"{secure}: {{fromEnvVar: PASSWORD}}").password, "sesame")
        self.write("secret", "\ufeff sesame \n")
        text = lease("etcd", f"{secure}: {{fromFile: secret}}")
        found = self.load(text)
        assert found.config.cluster and found.config.cluster.etcd
        self.assertEqual(found.config.cluster.etcd.password, "sesame")
        self.assertIn(self.path("secret"), [each.path for each in found.sources])
        self.assertNotIn("sesame", repr(found.config))

    def test_bad_password(self) -> None:
        """The first source that is named is the one that must give it."""
        self.write("empty", " \n")
        self.write("bytes", b"\xff")
        for source, said in (
            ("fromFile: none, fromEnvVar: PASSWORD", "fromFile: 'none' cannot be read: No such"),
            ("fromFile: empty", "fromFile: gives nothing"),
            ("fromFile: bytes", "fromFile: 'bytes' cannot be read: not UTF-8"),
            ("fromEnvVar: NONE", "fromEnvVar: gives nothing"),
            ("fromEnvVar: EMPTY", "fromEnvVar: gives nothing"),
        ):
            block = f"endpoints: ['https://a'], username: u, password: {{{source}}}"
            self.refused(lease("etcd", block), f"etcd.password.{said}")
        self.refused(lease("etcd", "username: u"), "etcd.password: required")
        self.assertIs(self.etcd("username: , password: {value: }").password, None)

    def test_endpoints(self) -> None:
        """Endpoints are URLs without a user, whose password is not shown."""
        for endpoint in ("x", "ftp://x", "http://", "http://x:99999", "http://x:a"):
            self.refused(lease("etcd", f"endpoints: ['{endpoint}']"), "etcd.endpoints[0]: got ")
        self.refused(
            lease("etcd", "endpoints: ['http://x:1', 'http://u:p@x:1']"),
            "etcd.endpoints[1]: must not hold a user or password, got 'http://***@x:1'",
        )
        self.refused(lease("etcd", "endpoints: []"), "etcd.endpoints: must hold at least 1")

    def test_in_clear(self) -> None:
        """Credentials go to https endpoints only, and certificates need one."""
        for block in (
            "username: u, password: {value: p}",
            "password: {value: p}",
            "username: u, password: {value: p}, endpoints: ['https://x', 'http://y']",
        ):
            self.refused(lease("etcd", block), "etcd.endpoints: username and password would go")
        self.refused(lease("etcd", "tls: {ca: a}"), "etcd.tls: would protect nothing")
        self.refused(lease("etcd", "tls: {cert: c}"), "etcd.tls.key: required")
        self.refused(lease("etcd", "tls: {key: k}"), "etcd.tls.cert: required")
        self.etcd("tls: {ca: a}, endpoints: ['https://x', 'http://y']")
        self.etcd("tls: {ca: , cert: , key: }")

    def test_ttl(self) -> None:
        """The lease lasts three seconds or more; a short one gets advice."""
        self.refused(lease("etcd", "ttl: 2"), "etcd.ttl: out of range, got 2")
        for ttl, notices in ((3, 1), (8, 1), (9, 0)):
            self.assert_notices(lease("etcd", f"ttl: {ttl}"), *["leave little room"] * notices)


class FilesystemTests(ClusterCase):
    """Tests for C{cluster.filesystem}."""

    def test_values(self) -> None:
        """Every key goes to its field; the path becomes absolute."""
        found = self.cluster(
            lease(
                "filesystem",
                "path: x, electionName: e, ttl: 3.5, deploymentId: d, topology: shared",
            )
        )
        path = os.path.join(self.directory, "x")
        self.assertEqual(found.filesystem, FilesystemConfig(path, "e", 3.5, "d", "shared"))
        found = self.cluster(lease("filesystem", "path: /x, deploymentId: "))
        self.assertEqual(found.filesystem, FilesystemConfig("/x"))

    def test_checks(self) -> None:
        """Path and name are not blank, the lease lasts three seconds or more."""
        for block, said in (
            ("path: ", "path: required"),
            ("path: ' '", "path: required"),
            ("path: x, electionName: ", "electionName: must not be blank"),
            ("path: x, ttl: 2.9", "ttl: out of range"),
            ("path: x, ttl: inf", "ttl: out of range"),
            ("path: x, topology: y", "topology: unknown value"),
        ):
            self.refused(lease("filesystem", block), f"filesystem.{said}")
