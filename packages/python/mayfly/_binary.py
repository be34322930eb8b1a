from __future__ import annotations

import os
import sys
from typing import Optional

_INSTALL = "install it as https://github.com/mayflydb/mayfly#install describes, or set MAYFLY_BINARY to its path"


class BinaryNotFound(FileNotFoundError):
    """The program mayfly is missing."""


def find_binary(binary: Optional[str] = None) -> str:
    """Returns the path of the program: binary, else MAYFLY_BINARY, else the first mayfly on PATH."""
    named = binary if binary is not None else os.environ.get("MAYFLY_BINARY") or None
    if named is not None:
        if not _is_program(named):
            origin = "MAYFLY_BINARY" if binary is None else "the argument binary"
            raise BinaryNotFound(f'{origin} names "{named}", which is not an executable file; {_INSTALL}')
        return os.fspath(named)
    name = "mayfly.exe" if sys.platform == "win32" else "mayfly"
    for directory in os.environ.get("PATH", "").split(os.pathsep):
        path = os.path.join(directory or ".", name)
        if _is_program(path) and not _is_script(path):
            return path
    raise BinaryNotFound(f"the program mayfly is not on PATH; {_INSTALL}")


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _is_script(path: str) -> bool:
    """Reports whether path is a wrapper, such as the command of the npm package of the same name."""
    try:
        with open(path, "rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return False  # executable, but not readable: a program
