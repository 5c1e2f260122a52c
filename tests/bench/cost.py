"""What a process has used: CPU seconds to the nanosecond, and its resident memory. Linux."""

from __future__ import annotations

import os
import time
from pathlib import Path


def cpu_seconds(pid: int) -> float:
    """CPU time of all threads of one process, without its children. Raises OSError when it is gone.

    The clock of another process has the id that clock_getcpuclockid(3) makes; /proc/PID/stat counts in steps of 10 ms.
    """
    return time.clock_gettime((~pid << 3) | 2)


def rss_bytes(pid: int) -> int:
    """Resident memory of one process. Raises OSError when it is gone."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
