"""
The webhook reporter: a text posted to a URL that nobody may see.

docs/reporting.md, "Webhook", tells users what is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from cronstable.config.values import WebhookReport
from cronstable.reports.http import HttpClient, Request
from cronstable.reports.templates import Templates
from cronstable.reports.trouble import ReportFailed, one_line
from cronstable.runs.redact import Masker

_PART = 8


def compose(
    report: WebhookReport, url: str, variables: Mapping[str, Any], templates: Templates
) -> Request:
    """
    Return the request that C{report} asks for; its C{headers} win over C{contentType}.

    @raise ReportFailed: the template fails.
    """
    body = templates.render("webhook.body", report.body, variables)
    headers = {name.lower(): (name, value) for name, value in report.headers}
    headers.setdefault("content-type", ("Content-Type", report.content_type))
    return Request(
        url=url,
        body=body.encode("utf-8", "replace"),
        headers=tuple(headers.values()),
        method=report.method,
        timeout=report.seconds,
    )


async def post(client: HttpClient, request: Request, within: float) -> None:
    """
    Send C{request} once, in at most C{within} seconds.

    @raise ReportFailed: it was not taken; the text has at most 1 KiB of the answer, and the
        trouble is transient where the network or the server had it.
    """
    answer = await client.send(request, within)
    if 200 <= answer.status < 300:
        return
    said = Masker(parts_of(request.url)).mask(one_line(answer.snippet))
    if 300 <= answer.status < 400:
        said = "redirects are not followed"
    raise ReportFailed(
        f"the answer was {answer.status}" + (f": {said}" if said else ""),
        transient=answer.status >= 500,
    )


def parts_of(url: str) -> set[str]:
    """Return C{url} and the parts of it that an answer may echo and a log must not hold."""
    parts = urlsplit(url)
    segments = {each for each in parts.path.split("/") if len(each) >= _PART}
    values = {value for _, value in parse_qsl(parts.query)}
    login = {each for each in (parts.username, parts.password) if each}
    tail = parts.path + (f"?{parts.query}" if parts.query else "")
    return {url, *segments, *values, *login, *({tail} if len(tail) >= _PART else ())}
