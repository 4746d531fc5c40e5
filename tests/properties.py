"""Hypothesis, for which no machine is too slow: what a test says must not depend on its load."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

__all__ = ["given", "settings", "st"]

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
