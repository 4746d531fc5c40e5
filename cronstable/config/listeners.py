"""
The C{web} and C{mcp} sections: their shape and their checks.

docs/configuration.md, "web" and "mcp", specifies the keys.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

from cronstable.config import ranges
from cronstable.config.addresses import loose_listener, without_userinfo
from cronstable.config.keys import (
    BOOL,
    FLOAT,
    INT,
    NULL_TEXT,
    SECRET,
    SECRET_FIELDS,
    TEXTS,
)
from cronstable.config.layers import Tell
from cronstable.config.notices import Notice, warning
from cronstable.config.reports import secret
from cronstable.config.schema import BoolOr, Enum, ListOf, MapOf, Record, Text
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
from cronstable.config.world import World

Say = Callable[[Notice], None]

_ANONYMOUS = "anonymous"
_HEADER = re.compile(r"[-!#$%&'*+.^_`|~0-9A-Za-z]+")

WEB = Record(
    {
        "listen": TEXTS,
        "headers": MapOf(Text(secret=True)),
        "allowedOrigins": TEXTS,
        "authToken": SECRET,
        "authTokens": ListOf(
            Record(
                {
                    **SECRET_FIELDS,
                    "scopes": ListOf(Enum("view", "control", "approve"), least=1),
                    "label": NULL_TEXT,
                },
                required=("scopes",),
            )
        ),
        "anonymousScopes": ListOf(Enum("view")),
        "socketMode": NULL_TEXT,
        "tls": Record({"cert": NULL_TEXT, "key": NULL_TEXT, "clientCa": NULL_TEXT}),
        "ui": BOOL,
        "metrics": BoolOr(
            Record({"enabled": BOOL, "public": BOOL, "durationBuckets": ListOf(FLOAT)})
        ),
        "nodeHistory": BoolOr(Record({"enabled": BOOL, "interval": FLOAT, "points": INT})),
        "badges": BoolOr(Record({"enabled": BOOL, "public": BOOL})),
        "bonjour": BoolOr(Record({"enabled": BOOL, "name": NULL_TEXT})),
    },
    required=("listen",),
)

MCP = Record(
    {
        "enabled": BOOL,
        "readOnly": BOOL,
        "toolsets": ListOf(Enum("observe", "act", "dags", "state")),
        "allowedOrigins": TEXTS,
        "allowUnauthenticated": BOOL,
        "resources": BOOL,
        "prompts": BOOL,
        "instructions": Text(null=True),
        "maxRows": INT,
        "maxBodyBytes": INT,
    },
    null=True,
)


def web(values: Any, tell: Tell, say: Say, world: World) -> WebConfig:
    """Return the C{web} section, telling what is wrong with it."""
    listen = tuple(values["listen"])
    token = values.get("authToken")
    for name in values.get("headers", {}):
        if _HEADER.fullmatch(name) is None:
            tell(
                ("headers", name),
                "not the name of a header; allowed: letters, digits and !#$%&'*+-.^_`|~",
            )
    built = WebConfig(
        listen,
        headers=tuple(values.get("headers", {}).items()),
        allowed_origins=tuple(values.get("allowedOrigins", ())),
        auth_token=None if token is None else secret(token),
        auth_tokens=_tokens(values.get("authTokens", ()), tell),
        anonymous_scopes=tuple(dict.fromkeys(values.get("anonymousScopes", ()))),
        socket_mode=values.get("socketMode"),
        tls=_tls(values.get("tls", {}), listen, tell),
        ui=values.get("ui", True),
        metrics=_metrics(values.get("metrics", True), tell),
        node_history=_node_history(values.get("nodeHistory", True), tell),
        badges=_badges(values.get("badges", True)),
        bonjour=_bonjour(values.get("bonjour", False), listen, tell),
    )
    if built.anonymous_scopes and not built.authenticated:
        tell(
            ("anonymousScopes",),
            "restricts nothing while there is no token; set authToken or authTokens as well",
        )
    if any(
        name.lower() == "access-control-allow-origin" and value.strip() == "*"
        for name, value in built.headers
    ):
        say(
            warning(
                "web.headers: Access-Control-Allow-Origin is *, so that a page of any origin may "
                "change things through a reader's browser"
            )
        )
    return built


def _tokens(entries: Any, tell: Tell) -> tuple[ScopedToken, ...]:
    tokens = []
    for number, entry in enumerate(entries):
        label = entry.get("label")
        if label == _ANONYMOUS:
            tell(
                ("authTokens", number, "label"),
                f"got '{_ANONYMOUS}', which names requests without a token; allowed: another text",
            )
        scopes = tuple(dict.fromkeys(entry["scopes"]))
        tokens.append(ScopedToken(secret(entry), scopes, label))
    return tuple(tokens)


def _tls(written: Any, listen: tuple[str, ...], tell: Tell) -> TlsFiles:
    files = TlsFiles(written.get("cert"), written.get("key"), written.get("clientCa"))
    secure = [without_userinfo(url) for url in listen if loose_listener(url).scheme == "https"]
    if bool(files.cert) != bool(files.key):
        missing = "key" if files.cert else "cert"
        tell(("tls", missing), "required, since a certificate and its key go together")
    elif files.ca and not files.cert:
        tell(("tls", "clientCa"), "needs cert and key as well")
    elif secure and not files.cert:
        tell(("tls",), f"required, with cert and key, to serve {', '.join(secure)}")
    elif files.cert and not secure:
        tell(
            ("tls",),
            "would protect nothing: no address under listen begins with https://; add one or "
            "remove tls",
        )
    return files


def _metrics(written: Any, tell: Tell) -> MetricsPage:
    if isinstance(written, bool):
        return MetricsPage(written)
    buckets = tuple(written.get("durationBuckets", ()))
    rising = all(one < two for one, two in pairwise(buckets))
    if not rising or not all(math.isfinite(bound) and bound > 0 for bound in buckets):
        tell(
            ("metrics", "durationBuckets"),
            f"got {list(buckets)}; allowed: finite numbers above 0, each more than the one before",
        )
    return MetricsPage(written.get("enabled", True), written.get("public", False), buckets)


def _node_history(written: Any, tell: Tell) -> NodeHistory:
    if isinstance(written, bool):
        return NodeHistory(written)
    interval, points = written.get("interval", 5.0), written.get("points", 720)
    for key, wrong in (
        ("interval", ranges.at_least(1)(interval)),
        ("points", ranges.between(10, 50000)(points)),
    ):
        if wrong:
            tell(("nodeHistory", key), wrong)
    return NodeHistory(written.get("enabled", True), interval, points)


def _badges(written: Any) -> Badges:
    if isinstance(written, bool):
        return Badges(written)
    return Badges(written.get("enabled", True), written.get("public", False))


def _bonjour(written: Any, listen: tuple[str, ...], tell: Tell) -> Bonjour:
    if isinstance(written, bool):
        written = {"enabled": written}
    built = Bonjour(written.get("enabled", True), written.get("name"))
    if built.enabled:
        if find_spec("zeroconf") is None:
            tell(("bonjour",), "needs the zeroconf library, which is not installed")
        if all(loose_listener(url).scheme == "unix" for url in listen):
            tell(("bonjour",), "has nothing to announce: every address under listen is unix://")
    return built


def mcp(values: Any, tell: Tell, say: Say, world: World) -> McpConfig:
    """Return the C{mcp} section, telling what is wrong with it; blank means all defaults."""
    if values is None:
        return McpConfig()
    names = {
        "enabled": "enabled",
        "readOnly": "read_only",
        "allowUnauthenticated": "allow_unauthenticated",
        "resources": "resources",
        "prompts": "prompts",
        "instructions": "instructions",
        "maxRows": "max_rows",
        "maxBodyBytes": "max_body_bytes",
    }
    fields = {field: values[key] for key, field in names.items() if key in values}
    for key in ("toolsets", "allowedOrigins"):
        if key in values:
            field = "toolsets" if key == "toolsets" else "allowed_origins"
            fields[field] = tuple(dict.fromkeys(values[key]))
    built = McpConfig(**fields)
    for key, value in (("maxRows", built.max_rows), ("maxBodyBytes", built.max_body_bytes)):
        wrong = ranges.at_least(1)(value)
        if wrong:
            tell((key,), wrong)
    if built.enabled and built.read_only and "act" in built.toolsets:
        say(
            warning(
                "mcp.toolsets: 'act' is left out while readOnly is true; set readOnly to false to "
                "offer it"
            )
        )
    return built
