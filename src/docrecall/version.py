"""The version, which packaging reads from here too."""

__version__ = "0.1.0"
