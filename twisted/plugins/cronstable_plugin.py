"""Offers ``twistd cronstable``; imports nothing of ours, so that a plugin scan costs nothing."""

from twisted.application.service import ServiceMaker

cronstable = ServiceMaker(
    "cronstable",
    "cronstable.tap",
    "Run scheduled jobs: a cron that remembers, retries and reports.",
    "cronstable",
)
