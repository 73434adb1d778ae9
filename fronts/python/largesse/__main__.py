"""The command `largesse`: starts the program that the wheel contains."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from ._library import PACKAGE

COMMAND = PACKAGE / "bin" / "largesse"


def main() -> NoReturn:
    """Becomes the packaged command, with the same arguments."""
    try:
        os.execv(COMMAND, ["largesse", *sys.argv[1:]])
    except FileNotFoundError:
        why = "this installation does not contain the command: install the wheel, or type the path of another largesse"
    except OSError as error:
        why = f"{COMMAND} cannot be started ({error.strerror}): is the wheel one for {os.uname().machine}?"
    sys.exit(f"largesse: {why}")


if __name__ == "__main__":
    main()
