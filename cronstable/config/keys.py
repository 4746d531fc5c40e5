"""
The declared keys of jobs, workflow tasks and reports.

docs/configuration.md specifies each; what is written here is their shape only.
"""

from __future__ import annotations

from cronstable.config.schema import (
    Block,
    Bool,
    BoolOr,
    Enum,
    Float,
    Int,
    IntOrText,
    ListOf,
    MapOf,
    Reader,
    Record,
    Text,
    TextOr,
    TextOrList,
)

TEXT = Text()
RAW = Text(raw=True)
NULL_TEXT = Text(null=True)
BOOL = Bool()
INT = Int()
NULL_INT = Int(null=True)
FLOAT = Float()
NULL_FLOAT = Float(null=True)
TEXTS = ListOf(TEXT)

CLUSTER_POLICY = Enum("Leader", "PreferLeader", "EveryNode")
ON_MISSED = Enum("skip", "run-once", "run-all")

SECRET_FIELDS: dict[str, Reader] = {
    name: Text(null=True, secret=True) for name in ("value", "fromFile", "fromEnvVar")
}
SECRET = Record(SECRET_FIELDS, expects="a mapping with value, fromFile or fromEnvVar")


REPORT = Record(
    {
        "mail": Record(
            {
                "from": NULL_TEXT,
                "to": NULL_TEXT,
                "smtpHost": TEXT,
                "smtpPort": INT,
                "subject": TEXT,
                "body": TEXT,
                "username": TEXT,
                "password": SECRET,
                "tls": BOOL,
                "starttls": BOOL,
                "validate_certs": BOOL,
                "html": BOOL,
            },
            required=("from", "to"),
        ),
        "sentry": Record(
            {
                "dsn": SECRET,
                "fingerprint": TEXTS,
                "level": TEXT,
                "extra": MapOf(TEXT),
                "body": TEXT,
                "environment": TEXT,
                "maxStringLength": INT,
            }
        ),
        "shell": Record(
            {"shell": RAW, "command": TextOrList(raw=True), "timeout": FLOAT},
            required=("command",),
        ),
        "webhook": Record(
            {
                "url": SECRET,
                "method": TEXT,
                "contentType": TEXT,
                "headers": MapOf(Text(secret=True)),
                "body": TEXT,
                "timeout": FLOAT,
            }
        ),
        "push": Record(
            {
                "enabled": BOOL,
                "priority": Enum("time-sensitive", "passive"),
                "includeLogTail": BOOL,
            }
        ),
        "eventlog": Record({"enabled": BOOL, "source": TEXT, "includeOutput": BOOL}),
    }
)

_REPORT_ONLY = Record({"report": REPORT})

_RETRY = Record(
    {
        "maximumRetries": INT,
        "initialDelay": FLOAT,
        "maximumDelay": FLOAT,
        "backoffMultiplier": FLOAT,
        "jitter": FLOAT,
    },
    required=("maximumRetries", "initialDelay", "maximumDelay", "backoffMultiplier"),
)

LAUNCH: dict[str, Reader] = {
    "shell": RAW,
    "environment": ListOf(
        Record({"key": TEXT, "value": Text(secret=True)}, required=("key", "value"))
    ),
    "env_file": TEXT,
    "workingDirectory": NULL_TEXT,
    "user": IntOrText(),
    "group": IntOrText(),
    "umask": TEXT,
    "priority": Enum("idle", "below-normal", "normal", "above-normal", "high"),
    "statsd": Record(
        {"prefix": TEXT, "host": TEXT, "port": INT}, required=("prefix", "host", "port")
    ),
    "captureStdout": BOOL,
    "captureStderr": BOOL,
    "streamPrefix": TEXT,
    "saveLimit": INT,
    "maxLineLength": INT,
    "outputGraceSeconds": NULL_FLOAT,
    "failsWhen": Record(
        {
            "producesStdout": BOOL,
            "producesStderr": BOOL,
            "nonzeroReturn": BOOL,
            "always": BOOL,
        },
        required=("producesStdout",),
    ),
    "executionTimeout": FLOAT,
    "killTimeout": FLOAT,
    "monitorResources": BoolOr(Record({"enabled": BOOL, "interval": FLOAT, "history": INT})),
    "verify": Record(
        {"command": TextOrList(raw=True), "timeout": FLOAT}, required=("command",), null=True
    ),
    "resourceLimits": Record({"cpu": TEXT, "memory": TEXT, "processes": TEXT, "required": BOOL}),
    "secrets": ListOf(Record({**SECRET_FIELDS, "name": TEXT}, required=("name",))),
    "stateAllowedScopes": TEXTS,
    "pool": NULL_TEXT,
    "poolSlots": INT,
    "queuePriority": INT,
    "queueTimeout": FLOAT,
    "onSuccess": _REPORT_ONLY,
}
"""Keys that say how a process is launched and judged: a job has them, and so has a task."""

DEFAULTS = Block(
    {
        **LAUNCH,
        "enabled": BOOL,
        "utc": BOOL,
        "timezone": TEXT,
        "onFailure": Record({"retry": _RETRY, "report": REPORT}),
        "onPermanentFailure": _REPORT_ONLY,
        "onLate": _REPORT_ONLY,
        "concurrencyPolicy": Enum("Allow", "Forbid", "Replace"),
        "concurrencyScope": Enum("node", "cluster"),
        "clusterPolicy": CLUSTER_POLICY,
        "onMissed": ON_MISSED,
        "startingDeadlineSeconds": NULL_INT,
        "catchupJitterSeconds": INT,
        "catchupLimit": INT,
        "onlyIfLastSucceeded": BOOL,
        "archiveOutput": BOOL,
        "redactArchivedSecrets": BOOL,
        "sla": Record(
            {
                "maxTimeSinceSuccessSeconds": NULL_INT,
                "lateAfterSeconds": NULL_INT,
                "maxRuntimeSeconds": NULL_INT,
            }
        ),
    }
)

SCHEDULE_KEYS = ("second", "minute", "hour", "dayOfMonth", "month", "year", "dayOfWeek")
SCHEDULE = TextOr(Record(dict.fromkeys(SCHEDULE_KEYS, TEXT)))

JOB = Block(
    {
        "name": TEXT,
        "command": TextOrList(raw=True),
        "schedule": SCHEDULE,
        **DEFAULTS.fields,
    },
    required=("name", "command", "schedule"),
)

TASK_LAUNCH: dict[str, Reader] = {**LAUNCH, "onFailure": _REPORT_ONLY}
"""The launch keys of a workflow task; its failures have reports but no C{retry} block."""

TASK = Block(
    {
        "id": TEXT,
        "command": TextOrList(raw=True),
        "type": Enum("task", "sensor", "approval"),
        "dependsOn": TEXTS,
        "triggerRule": Enum("all_success", "all_done"),
        "retries": INT,
        "retryDelaySeconds": FLOAT,
        "expand": Record({"fromTask": TEXT, "key": TEXT}, required=("fromTask", "key")),
        "pokeIntervalSeconds": FLOAT,
        "pokeTimeoutSeconds": FLOAT,
        "pokeJitterSeconds": FLOAT,
        "onReject": Enum("fail", "skip"),
        **TASK_LAUNCH,
    },
    required=("id",),
)

DAG = Block(
    {
        "name": TEXT,
        "tasks": ListOf(TASK),
        "schedule": SCHEDULE,
        "timezone": TEXT,
        "utc": BOOL,
        "onMissed": ON_MISSED,
        "startingDeadlineSeconds": NULL_INT,
        "catchupJitterSeconds": INT,
        "clusterPolicy": CLUSTER_POLICY,
        "enabled": BOOL,
        "retainRuns": INT,
    },
    required=("name", "tasks"),
)
