"""The bars: what is asked of a release, in the order of the table."""

from __future__ import annotations

from table import Bar, Rule


def _peer(factor: float, least: bool = False) -> Rule:
    return Rule(factor, "peer", least)


BARS = (
    Bar("M1", "ready_10", "start to first HTTP answer, 10 jobs", "s", (_peer(1.3),)),
    Bar("M1", "ready_1000", "the same, 1,000 jobs", "s", (_peer(0.6),)),
    Bar("M1", "ready_10000", "the same, 10,000 jobs", "s", (_peer(0.25),)),
    Bar("M1", "rss_10", "memory at rest, 10 jobs", "MB", (Rule(56),)),
    Bar("M1", "rss_1000", "the same, 1,000 jobs", "MB", (Rule(60),)),
    Bar("M1", "rss_10000", "the same, 10,000 jobs", "MB", (Rule(90),)),
    Bar("M2", "cpu", "CPU per minute with nothing due", "ms", (_peer(1),)),
    Bar("M2", "wakeups", "wake-ups per minute with nothing due", "", (Rule(6),)),
    Bar("M3", "first", "1,000 due at one instant: first start late", "ms", (Rule(6),)),
    Bar("M3", "last", "the same: last start late", "ms", (Rule(1.2, "limit"),)),
    Bar("M3", "cpu", "the same: CPU per run", "ms", (_peer(0.4),)),
    Bar("M3", "gap", "the same: slowest HTTP answer meanwhile", "ms", (Rule(25),)),
    Bar("M4", "missed", "200 each second: starts missed", "", (Rule(0),)),
    Bar("M4", "p99", "the same: 99 % start within", "ms", (_peer(0.6),)),
    Bar("M4", "cpu", "the same: CPU per run", "ms", (_peer(0.5),)),
    Bar("M5", "jobs_1000", "GET /jobs, 1,000 jobs, cold", "ms", (_peer(0.5),)),
    Bar("M5", "jobs", "GET /jobs, 10,000 jobs, cold", "ms", (_peer(0.5),)),
    Bar("M5", "jobs_stall", "the same: slowest answer to others", "ms", (Rule(20),)),
    Bar("M5", "unchanged", "GET /jobs with If-None-Match, 10,000 jobs", "ms", (Rule(2),)),
    Bar("M5", "metrics", "GET /metrics, 10,000 jobs, cold", "ms", (_peer(0.3),)),
    Bar("M5", "metrics_stall", "the same: slowest answer to others", "ms", (Rule(20),)),
    Bar("M5", "readers_stall", "500 readers of one job's lines: slowest answer", "ms"),
    Bar("M5", "readers_cpu", "the same: CPU per line and reader", "us"),
    Bar("M6", "visible", "one of 10,000 jobs new: visible after", "s", (_peer(0.3),)),
    Bar("M6", "late", "the same: a job of each second at most late", "ms", (Rule(50),)),
    Bar("M6", "gap", "the same: slowest HTTP answer meanwhile", "ms", (Rule(50),)),
    Bar("M7", "burst_cpu", "500 due at once with a store: CPU per run", "ms", (_peer(0.5),)),
    Bar("M7", "settled", "the same: at rest after", "s", (_peer(0.7),)),
    Bar("M7", "steady_cpu", "200 each second with a store: CPU per run", "ms", (_peer(0.5),)),
    Bar("M7", "steady_p99", "the same: 99 % start within", "ms", (_peer(0.5),)),
    Bar("M7", "share", "the same: CPU over that without a store", "times", (Rule(3),)),
    Bar("M7", "restart", "200 jobs of 1,000 records: history back after", "s", (_peer(0.5),)),
    Bar("M7", "trends", "GET trends of 1,000 records, first read", "ms", (_peer(0.3),)),
    Bar("M7", "appends", "rows written and flushed", "/s", (Rule(0.7, "limit", True),)),
    Bar("M8", "long", "one job prints 200 MB in lines of 100 bytes", "MB/s", (_peer(3, True),)),
    Bar("M8", "short", "one job prints 10 MB in lines of 2 bytes", "MB/s", (_peer(10, True),)),
    Bar("M8", "growth", "50 jobs print 5 MB each: memory over rest", "MB", (_peer(1),)),
    Bar("M8", "late", "the same: a job of each second at most late", "ms", (Rule(25),)),
    Bar("M9", "version", "cronstable --version", "ms", (_peer(1),)),
    Bar("M9", "validate", "cronstable --validate-config, 1,000 jobs", "ms", (_peer(0.5),)),
    Bar("M9", "get", "cronstable state get in a job", "ms", (_peer(0.7),)),
    Bar("M9", "sets", "values that a job sets, one after another", "/s", (_peer(1, True),)),
    Bar(
        "M10",
        "starts",
        "starts as another user, 10,000 jobs",
        "/s",
        (Rule(0.8, "limit", True),),
    ),
)
