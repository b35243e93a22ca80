"""The configuration that `docrecall nightly init` writes."""

from __future__ import annotations

import os
from pathlib import Path

from docrecall.demo import data_folder
from docrecall.errors import OutputError
from docrecall.show import printable


def write_example(path: str) -> None:
    """Write a commented configuration for the data of docrecall. OutputError where a file stands already."""
    target = Path(os.path.abspath(path))  # noqa: PTH100 - as the configuration is found again
    data = data_folder().resolve()
    home = target.parent.resolve()
    named = data.relative_to(home) if data.is_relative_to(home) else data
    text = Path(__file__).with_name("example.toml").read_text(encoding="utf-8").replace("@DATA@", named.as_posix())
    try:
        with target.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise OutputError(f"{printable(path)} is there already; name another file.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "no file can have such a name"
        raise OutputError(f"{printable(path)} was not written: {reason}.") from None
