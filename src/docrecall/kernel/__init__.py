"""The kernel: one batch of whole units in, per-unit scores out; pure functions."""
