"""Who hears of a run: mail, webhook, sentry, shell."""
