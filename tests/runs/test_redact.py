"""Tests for masking."""

from __future__ import annotations

import base64
import html
import json
import random
import time
from urllib.parse import quote, quote_plus

from twisted.trial.unittest import SynchronousTestCase

from cronstable.config.values import (
    MailReport,
    NamedSecret,
    Report,
    Secret,
    SentryReport,
    WebhookReport,
)
from cronstable.runs.redact import MASK, Masker, forms_of, written_secrets
from cronstable.runs.secret_patterns import mask_patterns
from tests.fakes import job
from tests.properties import given, settings, st

SECRET = "S3cr3t/+é=Xq"


class MaskerTests(SynchronousTestCase):
    """Known values."""

    def test_encodings(self) -> None:
        """A value is masked raw and in every usual encoding, and its surroundings stay."""
        masker = Masker([SECRET])
        for form in (
            SECRET,
            quote(SECRET, safe=""),
            quote(SECRET, safe="").lower().replace("s3cr3t", "S3cr3t").replace("xq", "Xq"),
            quote(SECRET),
            quote_plus(SECRET),
            json.dumps(SECRET)[1:-1],
            json.dumps(SECRET, ensure_ascii=False)[1:-1],
            json.dumps(SECRET)[1:-1].replace("/", "\\/"),
            html.escape(SECRET),
            base64.b64encode(SECRET.encode()).decode(),
            base64.urlsafe_b64encode(SECRET.encode()).decode(),
        ):
            self.assertEqual(masker.mask(f"a {form} b"), f"a {MASK} b", form)

    def test_quotes(self) -> None:
        """Quotes and markup characters are found escaped as JSON, HTML and shell write them."""
        value = 'it\'s <a> & "b"\\'
        masker = Masker([value])
        for form in (
            json.dumps(value)[1:-1],
            json.dumps(value)[1:-1]
            .replace("<", "\\u003c")
            .replace(">", "\\u003e")
            .replace("&", "\\u0026")
            .replace("'", "\\u0027"),
            html.escape(value),
            value.replace("'", "'\\''"),
        ):
            self.assertEqual(masker.mask(form), MASK)

    def test_inside_base64(self) -> None:
        """A value is masked inside the base64 of a longer text, whatever its alignment."""
        value = "correct-horse-battery"
        masker = Masker([value])
        for user in ("", "u", "us", "user:"):
            text = base64.b64encode(f"{user}{value}{user}".encode()).decode()
            shown = masker.mask(text)
            self.assertIn(MASK, shown)
            padded = shown.replace(MASK, "AAAA").encode()
            decoded = base64.b64decode(padded + b"=" * (-len(padded) % 4))
            self.assertNotIn(b"horse", decoded)

    def test_wrapped_base64(self) -> None:
        """Base64 in lines of 76 or 64 characters is masked line by line."""
        value = "".join(random.Random(1).choices("abcdefghijklmnop0123456789", k=150))
        alone = base64.b64encode(value.encode()).decode()
        for width in (64, 76):
            lines = [alone[at : at + width] for at in range(0, len(alone), width)]
            shown = Masker([value]).mask("\n".join(lines))
            self.assertNotIn(lines[1], shown)

    def test_several_lines(self) -> None:
        """A value of several lines is masked whole, and each long line alone."""
        value = "-----line one-----\nabcdefghijkl\nxy\n"
        masker = Masker([value])
        self.assertEqual(masker.mask("  abcdefghijkl"), f"  {MASK}")
        self.assertEqual(masker.mask(f"<{value}>"), f"<{MASK}>")
        self.assertEqual(masker.mask("xy"), "xy")

    def test_short_values(self) -> None:
        """A value of fewer than four characters is not masked."""
        masker = Masker(["abc", "", "  a  "])
        self.assertFalse(masker)
        self.assertEqual(masker.mask("abc a"), "abc a")
        self.assertEqual(Masker(["abcd"]).mask("xabcdx"), f"x{MASK}x")

    def test_longest_first(self) -> None:
        """Of two values of which one begins the other, the longer is masked whole."""
        self.assertEqual(Masker(["pass", "password1"]).mask("password1 pass"), f"{MASK} {MASK}")

    def test_odd_values(self) -> None:
        """Lone surrogates, NUL and markup of regular expressions are only text."""
        for value in ("a\udcffbc", "a\0bcd", "a.*(b", "[^]]\\"):
            self.assertEqual(Masker([value]).mask(f"x{value}y"), f"x{MASK}y")


class StreamTests(SynchronousTestCase):
    """Output in pieces."""

    def test_every_split(self) -> None:
        """A secret split between two pieces at any byte is masked."""
        data = f"one {SECRET} two {quote(SECRET, safe='')} three".encode()
        for at in range(len(data)):
            stream = Masker([SECRET]).stream()
            shown = stream.feed(data[:at]) + stream.feed(data[at:]) + stream.finish()
            self.assertEqual(shown, b"one *** two *** three")

    def test_byte_by_byte(self) -> None:
        """Single bytes are enough."""
        stream = Masker([SECRET]).stream()
        shown = b"".join(stream.feed(bytes([each])) for each in f"<{SECRET}>".encode())
        self.assertEqual(shown + stream.finish(), b"<***>")

    def test_holds_back_little(self) -> None:
        """Only what may be the beginning of a secret is held back, and it comes at the end."""
        stream = Masker(["hunter22"]).stream()
        self.assertEqual(stream.feed(b"a prompt: "), b"a prompt: ")
        self.assertEqual(stream.feed(b"say hun"), b"say ")
        self.assertEqual(stream.feed(b"dred"), b"hundred")
        self.assertEqual(stream.feed(b" hunt"), b" ")
        self.assertEqual(stream.finish(), b"hunt")

    def test_overlapping_values(self) -> None:
        """A value that ends as another begins is masked, and the other still recognised."""
        stream = Masker(["xxab", "abzz"]).stream()
        shown = stream.feed(b"1xxab") + stream.feed(b"zz abz") + stream.feed(b"z2")
        self.assertEqual(shown + stream.finish(), b"1***zz ***2")

    def test_undecodable(self) -> None:
        """Bytes that are no text pass as they came, with and without patterns."""
        data = bytes(range(256)) + b"\n"
        for patterns in (False, True):
            stream = Masker(["hunter22"], patterns).stream()
            self.assertEqual(stream.feed(data) + stream.finish(), data)

    @given(
        st.lists(st.text("abc", min_size=4, max_size=7), min_size=1, max_size=3),
        st.text("abc", max_size=60),
        st.lists(st.integers(0, 60), max_size=6),
    )
    @settings(max_examples=300)
    def test_same_as_whole(self, values: list[str], text: str, cuts: list[int]) -> None:
        """However a text is cut, no value survives in what the stream shows."""
        masker = Masker(values)
        stream = masker.stream()
        shown, last = b"", 0
        for cut in [*sorted(cuts), len(text)]:
            shown += stream.feed(text[last:cut].encode())
            last = max(last, cut)
        shown += stream.finish()
        self.assertEqual(shown.decode(), masker.mask(text))

    def test_patterns_across_pieces(self) -> None:
        """With patterns, a line that comes in pieces is judged as one."""
        stream = Masker((), patterns=True).stream()
        shown = stream.feed(b"ok\nPASSWO") + stream.feed(b"RD=hunter2 x\nnex") + stream.finish()
        self.assertEqual(shown, b"ok\nPASSWORD=***\nnex")

    def test_key_across_pieces(self) -> None:
        """A private key is masked although its lines come one by one."""
        body = [b"A" * 64 + b"\n"] * 3 + [b"QUJD\n"]
        stream = Masker((), patterns=True).stream()
        shown = b""
        for line in [b"x\n-----BEGIN RSA PRIVATE KEY-----\n", *body]:
            shown += stream.feed(line)
        shown += stream.feed(b"-----END RSA PRIVATE KEY-----\nafter\n") + stream.finish()
        self.assertNotIn(b"AAAA", shown)
        self.assertNotIn(b"QUJD", shown)
        self.assertTrue(shown.startswith(b"x\n-----BEGIN RSA PRIVATE KEY-----\n***\n"))
        self.assertTrue(shown.endswith(b"-----END RSA PRIVATE KEY-----\nafter\n"))

    def test_unfinished_key(self) -> None:
        """A private key that never ends does not swallow the text after it."""
        stream = Masker((), patterns=True).stream()
        shown = stream.feed(b"-----BEGIN PRIVATE KEY-----\n" + b"B" * 64 + b"\n")
        shown += stream.feed(b"B" * 64 + b"\nall done, really.\n") + stream.finish()
        self.assertNotIn(b"BBBB", shown)
        self.assertTrue(shown.endswith(b"all done, really.\n"))

    def test_long_line(self) -> None:
        """A line without end is shown in parts, so that memory stays bounded."""
        stream = Masker((), patterns=True).stream()
        shown = sum(len(stream.feed(b"word " * 4096)) for _ in range(64))
        self.assertGreater(shown, 64 * 20480 - 100_000)


class PatternTests(SynchronousTestCase):
    """What looks like a secret."""

    def masked(self, text: str, *gone: str) -> None:
        """Check that each of C{gone} has left C{text}, and that something was masked."""
        shown = mask_patterns(text)
        for each in gone:
            self.assertNotIn(each, shown)
        self.assertIn(MASK, shown)

    def test_assignments(self) -> None:
        """Assignments to keys that name a secret lose their value, not their key."""
        for key in (
            "PASSWORD",
            "DB_PASSWORD",
            "db_passwd",
            "SECRET",
            "MY_SECRET",
            "TOKEN",
            "GITHUB_TOKEN",
            "API_KEY",
            "apikey",
            "AWS_SECRET_ACCESS_KEY",
            "PRIVATE_KEY",
            "SSH_PASSPHRASE",
            "DB_PWD",
            "DB_PASS",
            "RABBITMQ_DEFAULT_PASS",
        ):
            self.assertEqual(mask_patterns(f"{key}=hunter2"), f"{key}=***")
            self.assertEqual(mask_patterns(f"export {key}='a b'"), f"export {key}=***")
            self.masked(f"run with {key}=hunter2 now", "hunter2")

    def test_environment_dump(self) -> None:
        """In a dump of an environment a value with blanks goes whole."""
        shown = mask_patterns("HOME=/root\nDB_PASSWORD=correct horse; battery\nPWD=/srv\n")
        self.assertEqual(shown, "HOME=/root\nDB_PASSWORD=***\nPWD=/srv\n")

    def test_other_assignments(self) -> None:
        """JSON, YAML, options and query strings are recognised."""
        self.masked('{"user": "x", "password": "hun\\"ter2", "n": 1}', "hun", "ter2")
        self.masked("  api_key: hunter2", "hunter2")
        self.masked("login --password hunter2 --user x", "hunter2")
        self.masked("login --token=hunter2", "hunter2")
        self.assertEqual(mask_patterns("GET /?token=abc&x=1"), "GET /?token=***&x=1")
        self.masked("X-Api-Key: hunter2", "hunter2")

    def test_headers(self) -> None:
        """Authorization headers keep their scheme only."""
        self.assertEqual(
            mask_patterns("Authorization: Bearer abc.def\nnext"), "Authorization: Bearer ***\nnext"
        )
        self.assertEqual(mask_patterns("authorization: basic dTpw"), "authorization: basic ***")
        self.masked('curl -H "Authorization: Token abcdef" x', "abcdef")
        self.masked("{'Authorization': 'Bearer abcdef'}", "abcdef")
        self.masked('Proxy-Authorization: Digest username="u", response="r"', "Digest username")

    def test_urls(self) -> None:
        """Credentials in URLs and connection strings go, with and without a user."""
        self.assertEqual(
            mask_patterns("postgres://bob:hunter2@db.example.org:5432/x?y=1"),
            "postgres://bob:***@db.example.org:5432/x?y=1",
        )
        self.assertEqual(mask_patterns("redis://:hunter2@host/0"), "redis://:***@host/0")
        self.masked("amqp://u:p@ss/w0rd@host", "ss", "w0rd")
        self.masked("https://0123456789abcdef0123@host/1", "0123456789abcdef0123")

    def test_formats(self) -> None:
        """Well-known token formats are recognised wherever they stand."""
        for token in (
            "AKIAIOSFODNN7EXAMPLE",
            "ASIAIOSFODNN7EXAMPLE",
            "AIza" + "a" * 35,
            "ghp_" + "a1" * 18,
            "gho_" + "a1" * 18,
            "github_pat_" + "a1" * 20,
            "glpat-" + "a1" * 10,
            "xoxb-123456789012-abcdef",
            "sk_live_" + "a1" * 12,
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        ):
            self.assertEqual(mask_patterns(f"see {token}, there"), "see ***, there")

    def test_private_keys(self) -> None:
        """Private key blocks go, of every kind, and the text around them stays."""
        for kind in ("", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "):
            block = (
                f"-----BEGIN {kind}PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n"
                f"{'QUJD' * 16}\nQUJD\n-----END {kind}PRIVATE KEY-----"
            )
            shown = mask_patterns(f"a\n{block}\nb")
            self.assertNotIn("QUJD", shown)
            self.assertTrue(shown.startswith("a\n") and shown.endswith("\nb"))
        escaped = json.dumps(
            f"-----BEGIN PRIVATE KEY-----\n{'QUJD' * 16}\n-----END PRIVATE KEY-----"
        )
        self.masked(escaped, "QUJD")
        self.masked(
            "-----BEGIN PGP PRIVATE KEY BLOCK-----\nlQdG\n-----END PGP PRIVATE KEY BLOCK-----",
            "lQdG",
        )
        self.masked(f"-----BEGIN PRIVATE KEY-----\n{'QUJD' * 16}\ncut here.", "QUJDQUJD")

    def test_ordinary_text(self) -> None:
        """Ordinary output stays as it is."""
        for text in (
            "2026-01-01 12:00:00 done in 3.2 s, 17 files, tokens=42, key=value",
            "http://host:8080/path?mail=a@example.org&x=1",
            "see https://example.org/a:b and mailto:a@example.org",
            "PWD=/root OLDPWD=/tmp PATH=/usr/bin:/bin",
            "PASSWORD_FILE=/run/secrets/db",
            "1 of 2 passed, by_passing=1, pass=2, PASS: test_x",
            "the secret: nobody knows",
            "x = secret_of(y)",
            "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        ):
            self.assertEqual(mask_patterns(text), text)

    def test_linear(self) -> None:
        """No text makes the search slow."""
        size = 200_000
        for piece in (
            "a",
            "=",
            "eyJ",
            "eyJaaaaaaaaaa.",
            "password",
            "password=",
            'password="',
            "--password",
            "://a:",
            "://a:b@",
            "-----BEGIN PRIVATE KEY-----",
            "-----BEGIN PRIVATE KEY-----\nAAAA\n",
            "authorization:",
            "bearer ",
            "\\",
            "token: ",
            " ",
            "\n",
            "export ",
            "SG.aaaaaaaaaaaaaaaaaaaa.",
        ):
            text = piece * (size // len(piece))
            begun = time.process_time()
            mask_patterns(text)
            self.assertLess(time.process_time() - begun, 2.0, piece)

    def test_values_and_patterns(self) -> None:
        """Both kinds together: a known value first, then what looks like a secret."""
        masker = Masker([SECRET], patterns=True)
        self.assertEqual(masker.mask(f"{SECRET} TOKEN=abc"), "*** TOKEN=***")
        self.assertTrue(masker)


class FormsTests(SynchronousTestCase):
    """The forms of one value."""

    def test_bounded(self) -> None:
        """A long value has a few dozen forms, not thousands."""
        self.assertLess(len(set(forms_of(SECRET * 4))), 60)


class WrittenSecretsTests(SynchronousTestCase):
    """Secrets that a job's definition holds."""

    def test_written(self) -> None:
        """Those of the job and of its reporters count, each once; other sources do not."""
        report = Report(
            mail=MailReport(password=Secret("mail-1")), webhook=WebhookReport(url=Secret("url-1"))
        )
        one = job(
            secrets=(
                NamedSecret("A", Secret("value-1")),
                NamedSecret("B", Secret(from_env_var="SOME_VARIABLE")),
                NamedSecret("C", Secret("mail-1")),
            ),
            on_failure=report,
            on_late=Report(sentry=SentryReport(dsn=Secret("dsn-1"))),
        )
        self.assertEqual(written_secrets(one), ("value-1", "mail-1", "url-1", "dsn-1"))
        self.assertEqual(written_secrets(job()), ())
