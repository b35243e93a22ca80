"""The nightly job: one night of a log is scored, published as a whole, and judged by gates."""
