"""A demo server that first writes down how it was launched: `recorder.py FOLDER PORT`, one file in the folder for each launch.

Run as a script. The file holds argv, environment variables (as the kernel has them) and working folder, zero bytes between.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main() -> None:
    folder, port = Path(sys.argv[1]), sys.argv[2]
    parts = [Path("/proc/self/cmdline").read_bytes(), Path("/proc/self/environ").read_bytes(), os.getcwd().encode()]
    draft = folder / f"{os.getpid()}.draft"
    draft.write_bytes(b"\0\0".join(parts).replace(b"\0PORT=" + port.encode() + b"\0", b"\0PORT=?\0"))
    draft.rename(folder / f"{os.getpid()}.launch")
    os.execv(sys.executable, [sys.executable, "-m", "openenv_gateway.demo", "--port", port])


if __name__ == "__main__":
    main()
