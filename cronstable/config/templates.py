"""
The texts that reports use unless the configuration has others (Jinja2).

C{SUBJECT}, C{BODY}, C{SENTRY_BODY} and C{WEBHOOK_BODY} take part in a job's digest, byte for
byte: to change one is to change the identity of every job.

docs/reporting.md, "Templates", tells users what they may write instead.
"""

from __future__ import annotations

SUBJECT = "Cron job '{{name}}' {% if success %}completed{% else %}failed{% endif %}"

BODY = """
{% if fail_reason -%}
(job failed because {{fail_reason}})
{% endif %}
{% if stdout and stderr -%}
STDOUT:
---
{{stdout}}
---
STDERR:
{{stderr}}
{% elif stdout -%}
{{stdout}}
{% elif stderr -%}
{{stderr}}
{% else -%}
(no output was captured)
{% endif %}
"""


def _sentry(subject: str, body: str) -> str:
    return f"{subject}\n{body}"


def _webhook(subject: str, body: str) -> str:
    return '{"text": {% filter tojson %}' + _sentry(subject, body) + "{% endfilter %}}"


SENTRY_BODY = _sentry(SUBJECT, BODY)
WEBHOOK_BODY = _webhook(SUBJECT, BODY)
FINGERPRINT = ("cronstable", "{{ environment.HOSTNAME }}", "{{ name }}")

LATE_SUBJECT = "Cron job '{{ name }}' is overdue ({{ sla_check }})"
LATE_BODY = """
Job:           {{ name }}
Schedule:      {{ schedule }}
Breached:      {{ sla_check }}
Threshold:     {{ threshold_seconds }} seconds
Observed:      {{ observed_seconds }} seconds
Last success:  {{ last_success_at or "(none recorded)" }}
"""
LATE_SENTRY_BODY = _sentry(LATE_SUBJECT, LATE_BODY)
LATE_WEBHOOK_BODY = _webhook(LATE_SUBJECT, LATE_BODY)
LATE_FINGERPRINT = ("cronstable", "sla", "{{ name }}")

NOTIFY_SUBJECT = "cronstable {{ event }}: {{ subject }}"
NOTIFY_BODY = "{{ message }}\n"
NOTIFY_SENTRY_BODY = _sentry(NOTIFY_SUBJECT, NOTIFY_BODY)
NOTIFY_WEBHOOK_BODY = _webhook(NOTIFY_SUBJECT, NOTIFY_BODY)
NOTIFY_FINGERPRINT = ("cronstable", "{{ event }}", "{{ name }}")
