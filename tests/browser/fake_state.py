"""What the fake daemon tells of a durable store."""

from __future__ import annotations

from tests.browser.fake_data import HOSTILE_NAME, Json


def inventory(now: float) -> Json:
    """Answer /state."""

    def group(*scopes: tuple[str, int]) -> Json:
        return {
            "count": sum(count for _, count in scopes),
            "streams": len(scopes),
            "scopes": [{"scope": name, "count": count} for name, count in scopes],
        }

    return {
        "enabled": True,
        "records": {
            "logs": group(("backup", 4)),
            "meta": group(("", 1)),
            "runs": group(("backup", 812), (HOSTILE_NAME, 2)),
        },
        "documents": {
            "cursor": group(("sync", 1)),
            "dagrun": group(("etl", 3)),
            "kv": group(("sync", 2)),
        },
        "leases": [
            {
                "name": "slots/sync",
                "holder": "node-a#0123456789ab",
                "fence": 3,
                "expiresAt": now + 25,
                "expired": False,
            },
            {
                "name": "retry-claim/backup",
                "holder": "node-b#ba9876543210",
                "fence": 1,
                "expiresAt": now - 600,
                "expired": True,
            },
        ],
        "quarantine": 1,
        "enumerable": True,
        "view": {
            "backend": "filesystem",
            "path": "/var/lib/cronstable/default",
            "namespace": "default",
            "topology": "single-node",
            "shared_locking": False,
            "job_set_id": "v1:" + "3f2a91c4" * 8,
        },
        "stats": {
            "ops": {"append": {"count": 1234, "errors": 2, "seconds": 1.5}},
            "lock": {"acquisitions": 3, "wait_seconds": 0.0},
            "throttle": {"count": 0, "wait_seconds": 0.0},
            "workers": {},
            "writes": {"pending": 0, "dropped": {"retry": 1}},
        },
        "node": {
            "host": "node-a",
            "retries": [
                {
                    "job": "backup",
                    "attempt": 2,
                    "nextRetryAt": "2030-01-02T03:04:05+00:00",
                    "delaySeconds": 60.0,
                }
            ],
            "slots": [
                {
                    "slot": "sync",
                    "holder": "node-a#0123456789ab",
                    "fence": 3,
                    "expiresAt": now + 25,
                    "refs": 1,
                }
            ],
        },
    }


def documents(namespace: str) -> Json:
    """Answer /state/documents."""
    found = [
        {"key": "last-id", "updatedAt": 1_767_225_600.0, "valueSize": 6, "valueType": "int"},
        {
            "key": "<img src=x onerror=alert(1)>",
            "updatedAt": 1_767_225_601.0,
            "valueSize": 2,
            "valueType": "dict",
        },
        {"key": "for-ever", "updatedAt": 1e300, "valueSize": 2, "valueType": "str"},
    ]
    return {"namespace": namespace, "documents": found}


def records(stream: str) -> Json:
    """Answer /state/records."""
    found = [
        {"outcome": "success", "exit_code": 0, "finished_at": "2026-01-01T00:00:00+00:00"},
        {"outcome": "failure", "exit_code": 3, "resources": {"samples": 4}},
    ]
    return {"stream": stream, "records": found, "truncated": True}
