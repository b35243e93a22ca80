"""Resampling, intervals and corrections: pure functions over arrays, none of which reads a table.

What is resampled is how often each distinct value occurs, so ten million recalls cost about as much as twenty values.
Every function takes arrays or sequences of finite numbers without nulls, gives None where there is too little to say
anything, and raises UsageError (a ValueError) for arguments that have no meaning. Order never matters, and the same
seed gives the same bits (with the same release of numpy).
"""

from docrecall.stats.corrections import benjamini_hochberg, holm
from docrecall.stats.effects import effect_size, smallest_difference
from docrecall.stats.intervals import Interval, Method, bootstrap_difference, bootstrap_mean
from docrecall.stats.orders import Agreement, kendall_tau
from docrecall.stats.permutations import permutation_tests
from docrecall.stats.sample import Sample
from docrecall.stats.signs import sign_flip_test

__all__ = [
    "Agreement",
    "Interval",
    "Method",
    "Sample",
    "benjamini_hochberg",
    "bootstrap_difference",
    "bootstrap_mean",
    "effect_size",
    "holm",
    "kendall_tau",
    "permutation_tests",
    "sign_flip_test",
    "smallest_difference",
]
