"""`python -m docrecall` is the command `docrecall`."""

from docrecall.cli import run

run()
