"""What a running job may ask: the loopback ``/v1`` service, and the client that talks to it."""
