"""Configurations made at random from what every implementation of the ID accepts."""

from __future__ import annotations

import json
from random import Random
from typing import Any

Tree = Any


def yaml(tree: Tree, indent: str = "") -> str:
    """Return a tree of mappings, lists and text as YAML in block style."""
    if isinstance(tree, dict):
        return "".join(f"{indent}{key}:{_value(value, indent)}" for key, value in tree.items())
    lines = []
    for item in tree:
        if isinstance(item, dict):
            text = yaml(item, indent + "  ")
            lines.append(f"{indent}- {text[len(indent) + 2 :]}")
        else:
            lines.append(f"{indent}-{_value(item, indent)}")
    return "".join(lines)


def _value(value: Tree, indent: str) -> str:
    if isinstance(value, (dict, list)):
        return "\n" + yaml(value, indent + "  ")
    return f" {value}\n" if value else "\n"


def quoted(text: str) -> str:
    """Return a text in double quotes, as YAML and JSON both read it."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\x7f")


class RandomConfig:
    """Makes one directory's files from a seed: C{files}, and C{environ} for what they refer to."""

    def __init__(self, seed: int, is_root: bool) -> None:
        self._random = Random(seed)
        self._is_root = is_root
        self._stateful = self._maybe()
        self.environ = {"SET_VAR": "some value", "EMPTY_VAR": "", "DSN": "x"}
        self.files = {"vars.env": "# names\nFROM_FILE=1\n OTHER = a=b\n"}
        self.files["included.yaml"] = yaml(self._content("inc"))
        self.files["tab.cron"] = self._crontab()
        main = self._content("main")
        if self._maybe():
            main = {"include": ["included.yaml", "tab.cron"], **main}
        if self._stateful:
            main |= {"state": {"path": "store"}, "pools": {"db": {"slots": "4"}}}
        self.files["main.yaml"] = yaml(main)

    def _maybe(self, chance: float = 0.5) -> bool:
        return self._random.random() < chance

    def _one(self, *choices: Tree) -> Tree:
        return self._random.choice(choices)

    def _some(self, keys: dict[str, Tree], chance: float) -> dict[str, Tree]:
        return {key: value for key, value in keys.items() if self._maybe(chance)}

    def _text(self) -> str:
        return quoted(
            self._one(
                "plain", "with  blanks ", "007", "null", "é ü", "\U0001f600 astral", "a\\b\"c",
                "\x7f", "tab\there", "${SET_VAR}", "${EMPTY_VAR:-fallback}",
                "$${NOT} $x", "a ${SET_VAR}!",
            )
        )  # fmt: skip

    def _seconds(self) -> str:
        return self._one(
            "1", "30", "30.0", "3e1", "0.25", "1_000", "1e-3", "1.5e2", "12.750", "'45'"
        )

    def _boolean(self) -> str:
        return self._one("true", "false", "yes", "No", "ON", "off", "1", "0")

    def _command(self) -> Tree:
        return self._one(
            "echo hi", '"echo \\"x\\" $HOME ${SET_VAR}"', "|\n        one\n        two",
            ["a", "b c", "'007'"], ">\n        folded\n        text", "true", ["/bin/true"],
        )  # fmt: skip

    def _schedule(self) -> Tree:
        return self._one(
            '"* * * * *"', '"*/5  0-6 * * mon"', "'@daily'", "'@reboot'", '"H H * * *"',
            '"0 0 L * *"', '"0 0 1 1 * 2031"', '"*/10 * * * * * *"', '"  1 2 3 4 5  "',
            '"@hourly"', "'@Weekly'",
            {"minute": '"5"'}, {"minute": '"0"', "hour": '"3"', "year": '"2030"'},
            {"second": '"30"', "dayOfWeek": '"fri"'}, {"dayOfMonth": '"L-2"', "month": '"feb"'},
        )  # fmt: skip

    def _secret(self) -> Tree:
        return self._one(
            {"value": self._text()}, {"fromFile": "/no/such/file"}, {"fromEnvVar": "DSN"},
            {"value": "", "fromEnvVar": "DSN"}, {"value": '""', "fromFile": "x"},
        )  # fmt: skip

    def _report(self) -> Tree:
        blocks = {
            "mail": {
                "from": self._one("a@example.org", ""),
                "to": self._one('"a@example.org, b@example.org"', '""'),
                **self._some(
                    {
                        "smtpHost": self._text(),
                        "smtpPort": self._one("25", "5_87", "'2525'"),
                        "subject": self._text(),
                        "body": self._text(),
                        "username": self._one("u", '""'),
                        "password": self._secret(),
                        "html": self._boolean(),
                        "validate_certs": self._boolean(),
                        "tls": "false",
                        "starttls": self._boolean(),
                    },
                    0.3,
                ),
            },
            "sentry": self._some(
                {
                    "dsn": self._secret(),
                    "fingerprint": ["a", "'{{ name }}'"],
                    "level": "warning",
                    "extra": {"n": "5", "t": "true", "s": self._text()},
                    "body": self._text(),
                    "environment": self._text(),
                    "maxStringLength": "100",
                },
                0.5,
            )
            or {"level": "error"},
            "shell": {
                "command": self._one("echo ${X}", ["a", "b"], "", '""'),
                **self._some({"shell": "/bin/bash", "timeout": self._one("60", "60.0", "5")}, 0.5),
            },
            "webhook": self._some(
                {
                    "url": self._secret(),
                    "method": "PUT",
                    "contentType": self._text(),
                    "headers": {"X-A": self._text(), "x-b": "2"},
                    "body": self._text(),
                    "timeout": self._seconds(),
                },
                0.5,
            )
            or {"method": "POST"},
            "eventlog": self._one({"enabled": "false"}, {"includeOutput": "true"}, {"source": "x"}),
        }
        return self._some(blocks, 0.4) or {"shell": {"command": "true"}}

    def _failure(self) -> Tree:
        retry = {
            "maximumRetries": self._one("0", "3", "-1", "1_0"),
            "initialDelay": self._seconds(),
            "maximumDelay": self._seconds(),
            "backoffMultiplier": self._one("2", "1.5", "2.0"),
        }
        hook = self._some({"retry": retry, "report": self._report()}, 0.6)
        return hook or {"retry": retry}

    def _launch(self) -> dict[str, Tree]:
        keys: dict[str, Tree] = {
            "shell": self._one("/bin/bash", "'/bin/${SET_VAR}'", '""'),
            "timezone": self._one("Europe/Berlin", "UTC", "Etc/UTC", "America/New_York"),
            "utc": self._boolean(),
            "environment": [
                {"key": self._one("A", "ZED", "a_b", "FROM_FILE", "É"), "value": self._text()}
                for _ in range(self._random.randint(1, 4))
            ],
            "env_file": "vars.env",
            "workingDirectory": self._one("/tmp", ""),
            "captureStdout": self._boolean(),
            "captureStderr": self._boolean(),
            "streamPrefix": self._one('""', "'{job_name}: '", '"x ${SET_VAR} "'),
            "saveLimit": self._one("0", "10", "4_096"),
            "maxLineLength": self._one("1", "1024"),
            "enabled": self._boolean(),
            "failsWhen": {
                "producesStdout": self._boolean(),
                **self._some(
                    {k: self._boolean() for k in ("producesStderr", "nonzeroReturn", "always")}, 0.5
                ),
            },
            "onFailure": self._failure(),
            "onPermanentFailure": {"report": self._report()},
            "onSuccess": {"report": self._report()},
            "statsd": {"prefix": "p.${SET_VAR}", "host": "localhost", "port": "8125"},
            "concurrencyPolicy": self._one("Allow", "Forbid", "Replace"),
            "concurrencyScope": "node",
            "clusterPolicy": self._one("Leader", "PreferLeader", "EveryNode"),
            "executionTimeout": self._seconds(),
            "killTimeout": self._one("0", "30", "1.50", "inf"),
            "onMissed": self._one("skip", "run-once", "run-all"),
            "startingDeadlineSeconds": "60",
            "onlyIfLastSucceeded": self._boolean(),
            "archiveOutput": self._boolean(),
            "priority": self._one("normal", "idle", "below-normal"),
            "sla": {"maxRuntimeSeconds": "5"},
            "monitorResources": self._one("true", {"interval": "2"}),
            "verify": {
                "command": self._one("test -f ${X}", ["a", "'b'"]),
                **self._some({"timeout": self._one("60", "5.5")}, 0.5),
            },
            "resourceLimits": self._some(
                {
                    "cpu": self._one("1.50", "2", "max", "0.25"),
                    "memory": self._one("512M", "1.5GiB", "Max", "1048576", "2gb"),
                    "processes": self._one("64", "max"),
                    "required": self._boolean(),
                },
                0.6,
            )
            or {"processes": "5"},
        }
        if self._is_root:
            keys["user"] = self._one("root", "0", "daemon", "'1'")
            keys["group"] = self._one("root", "0", "daemon")
        return keys

    def _job(self, name: str) -> Tree:
        job = {"name": quoted(name), "command": self._command(), "schedule": self._schedule()}
        rest = list(self._some(self._launch(), self._one(0.05, 0.2, 0.4)).items())
        self._random.shuffle(rest)
        return {**job, **dict(rest), **self._shared()}

    def _shared(self) -> dict[str, Tree]:
        """Return keys that need the store."""
        keys: dict[str, Tree] = {}
        if self._stateful and self._maybe(0.3):
            keys["concurrencyPolicy"] = self._one("Forbid", "Replace")
            keys["concurrencyScope"] = "cluster"
        if self._stateful and self._maybe(0.3):
            tuning = {
                "poolSlots": self._one("1", "2"),
                "queuePriority": self._one("0", "-3"),
                "queueTimeout": self._seconds(),
            }
            keys |= {"pool": "db", **self._some(tuning, 0.4)}
        return keys

    def _content(self, prefix: str) -> Tree:
        names = ("a", "é", "\U0001f600", "with blank", "007")
        count = self._random.randint(1, len(names))
        content: dict[str, Tree] = {"jobs": [self._job(f"{prefix}-{n}") for n in names[:count]]}
        if self._maybe():
            defaults = self._some(self._launch(), 0.15)
            content["defaults"] = defaults or {"captureStdout": "true"}
        return content

    def _crontab(self) -> str:
        lines = [
            "# a comment", "", "SHELL=/bin/bash", "MAILTO = \"ops\"", "CRON_TZ=Europe/Paris",
            "A='x '", "* * * * * echo a  b", "@midnight true", "\t0 3 * * mon-fri\techo \\%d",
            "@reboot x\r", "H H(0-3) * * * hashed", "0 0 L * fri#1 é \U0001f600",
            "CRON_TZ=UTC", "SHELL=",
        ]  # fmt: skip
        self._random.shuffle(lines)
        return "\n".join(lines[: self._random.randint(3, len(lines))]) + "\n"
