"""
Hashed slots: an `H` in a field, replaced by values that depend on a key alone.

docs/schedules.md describes the forms and how a key picks its values.
"""

from __future__ import annotations

import re
from hashlib import sha256

from cronstable.schedule.errors import ScheduleError
from cronstable.schedule.fields import DAY_OF_MONTH, YEAR, FieldSpec, problem

_FORM = re.compile(r"[hH](?:\(([0-9]{1,9})-([0-9]{1,9})\))?(?:/([0-9]{1,9}))?")
_HINT = "the forms are H, H(a-b), H/n and H(a-b)/n, with numbers only"
_UNRANGED_DAYS = 28


def holds_slot(text: str) -> bool:
    """
    Whether an item of this field text begins like a hashed slot.
    """
    return ("h" in text or "H" in text) and any(item[:1] in ("h", "H") for item in text.split(","))


def resolve(spec: FieldSpec, text: str, key: str | None) -> str:
    """
    The field's text with every hashed slot replaced by values; raises ScheduleError.
    """
    items = text.split(",")
    return ",".join(_resolve(spec, item, key) if item[:1] in ("h", "H") else item for item in items)


def _resolve(spec: FieldSpec, item: str, key: str | None) -> str:
    form = _FORM.fullmatch(item)
    if form is None:
        raise problem(spec, item, "not a hashed slot", _HINT)
    if spec is YEAR:
        raise problem(spec, item, "a year cannot be hashed")
    low, high = _range(spec, item, form)
    span = high - low + 1
    if key is None:
        raise problem(spec, item, "H needs a key (the job's name), and there is none here")
    value = _hash(spec, key)
    if form[3] is None:
        return str(low + value % span)
    step = int(form[3])
    if not 1 <= step <= span:
        raise problem(spec, item, f"the step of this slot is a number from 1 to {span}")
    return ",".join(map(str, range(low + value % step, high + 1, step)))


def _range(spec: FieldSpec, item: str, form: re.Match[str]) -> tuple[int, int]:
    if form[1] is None:
        return spec.low, _UNRANGED_DAYS if spec is DAY_OF_MONTH else spec.star_high
    low, high = int(form[1]), int(form[2])
    if low > high:
        raise problem(spec, item, "a range runs upwards and does not wrap around")
    if low < spec.low or high > spec.high:
        raise problem(spec, item, "the range leaves the field")
    return low, high


def _hash(spec: FieldSpec, key: str) -> int:
    text = f"{spec.label}\n{key}"
    try:
        octets = text.encode()
    except UnicodeEncodeError as error:
        raise ScheduleError(f"the key of a hashed slot is not valid text: {key!r}") from error
    return int.from_bytes(sha256(octets).digest()[:8], "big")
