"""
``cronstable lock ACTION``: locks across the fleet, held for this run by its daemon.

docs/job-state.md describes them.
"""

from __future__ import annotations

import sys

from cronstable.commands import jobside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Sequence

    from cronstable.jobapi.client import Endpoint

LONGEST_WAIT = 2_000_000.0
"""Seconds for which a lock can be waited for: a socket counts milliseconds in 31 bits."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the actions."""
    actions = jobside.actions_of(parser)
    acquire = jobside.action(
        actions, "lock", "acquire", _acquire, "take a lock, and print the token that frees it"
    )
    release = jobside.action(actions, "lock", "release", _release, "free a lock by its token")
    release.add_argument("token", metavar="TOKEN")
    run = actions.add_parser(
        "run",
        help="run a command while a lock is held",
        description="run a command while a lock is held",
        usage="cronstable lock run NAME [options] -- COMMAND...",
    )
    for each in (acquire, run):
        each.add_argument("name", metavar="NAME")
        _add_options(each)
        jobside.add_scope(each)
    run.add_argument("words", metavar="COMMAND", nargs="*", help="best put after --")
    run.set_defaults(act=_run, after_dashes=None, parser=run)


def run(options: Namespace) -> int:
    """Do what the action says, and return the exit status."""
    return jobside.run_action("lock", options)


def _add_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--permits",
        metavar="N",
        type=int,
        default=1,
        help="how many may hold it at once (default: 1)",
    )
    parser.add_argument("--wait", action="store_true", help="wait for it if it is taken")
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=_finite,
        default=0.0,
        help="how long --wait waits (default: 0, not at all)",
    )
    parser.add_argument(
        "--ttl",
        metavar="SECONDS",
        type=float,
        help="how long it is held if the daemon is gone (default: state.jobApi.lockTtlSeconds)",
    )


def _finite(text: str) -> float:
    import math
    from argparse import ArgumentTypeError

    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds):
        raise ArgumentTypeError(f"SECONDS must be a finite number, not {text!r}")
    return min(max(seconds, 0.0), LONGEST_WAIT)


def _acquire(options: Namespace, endpoint: Endpoint) -> int:
    token = _token(options, endpoint)
    if token is None:
        return _not_acquired(options)
    jobside.show(token)
    return 0


def _release(options: Namespace, endpoint: Endpoint) -> int:
    endpoint.post("/v1/lock/release", {"token": options.token})
    return 0


def _run(options: Namespace) -> int:
    command = options.words if options.after_dashes is None else options.after_dashes
    if options.after_dashes is not None and options.words:
        options.parser.error("the command belongs after `--`, all of it")
    if not command:
        jobside.tell("cronstable lock: lock run needs a command to run (put it after `--`)")
        return 1
    return jobside.asked(
        "lock", lambda options, endpoint: _run_locked(options, endpoint, command), options
    )


def _run_locked(options: Namespace, endpoint: Endpoint, command: Sequence[str]) -> int:
    from cronstable.commands.child import run_child
    from cronstable.jobapi.client import Trouble

    token = _token(options, endpoint)
    if token is None:
        return _not_acquired(options)
    try:
        sys.stdout.flush()
        return run_child(command)
    except (OSError, ValueError) as error:
        raise Trouble(f"cannot run {command[0]!r}: {error}") from None
    finally:
        try:
            endpoint.post("/v1/lock/release", {"token": token})
        except Trouble:
            pass  # The end of the run frees it.


def _token(options: Namespace, endpoint: Endpoint) -> str | None:
    """Return the token of the lock once it is had, None if it could not be had."""
    from cronstable.jobapi.client import TIMEOUT, Trouble

    answer = endpoint.post(
        "/v1/lock/acquire",
        {
            "scope": options.scope,
            "name": options.name,
            "permits": options.permits,
            "wait": options.wait,
            "blockSeconds": options.timeout,
            "ttl": options.ttl,
        },
        TIMEOUT + (options.timeout if options.wait else 0.0),
    )
    if not answer.get("acquired"):
        return None
    token = answer.get("token")
    if not isinstance(token, str):
        raise Trouble("the endpoint gave a lock without a token")
    return token


def _not_acquired(options: Namespace) -> int:
    jobside.tell(f"lock not acquired: {options.name}")
    return jobside.NOT_ACQUIRED
