"""What is counted: prometheus, statsd, resource sampling."""
