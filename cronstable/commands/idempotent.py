"""``cronstable idempotent KEY``: do something once, whoever tries (docs/job-state.md)."""

from __future__ import annotations

from cronstable.commands import jobside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from cronstable.jobapi.client import Endpoint


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("key", metavar="KEY")
    parser.add_argument(
        "--ttl",
        metavar="SECONDS",
        type=float,
        default=0.0,
        help="let the key be won again after so long (default: never)",
    )
    parser.add_argument(
        "--release", action="store_true", help="let the key be won again from now on"
    )
    jobside.add_scope(parser)


def run(options: Namespace) -> int:
    """Claim the key: 0 for whoever is first, 5 for everybody else."""
    return jobside.asked("idempotent", _release if options.release else _claim, options)


def _claim(options: Namespace, endpoint: Endpoint) -> int:
    answer = endpoint.post(
        "/v1/idempotency/claim",
        {"scope": options.scope, "key": options.key, "ttl": options.ttl},
    )
    return 0 if answer.get("fresh") else jobside.CLAIMED


def _release(options: Namespace, endpoint: Endpoint) -> int:
    endpoint.post("/v1/idempotency/release", {"scope": options.scope, "key": options.key})
    return 0
