"""How a serving process uses memory: what it settles once, after its start."""

from __future__ import annotations

import ctypes
import gc
import logging
import platform

log = logging.getLogger(__name__)

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # parameters of mallopt(3)
KEPT = 32 * 2**20
"""Bytes of freed memory that the C library keeps for the next large observation."""


def settle() -> None:
    """To be called when everything that stays is there, and before the first call."""
    _spare_garbage_collector()
    _keep_freed_memory()


def _spare_garbage_collector() -> None:
    """What there is after the start stays: it need not be searched for garbage again. What calls leave behind is nearly always
    freed by its reference count, so the search for cycles may be rarer than Python's defaults, which suit small programs."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


def _keep_freed_memory() -> None:
    """A call with an observation of 500 KB needs a few buffers of that size, one after the other. By default glibc gives each
    back to the system at once and gets fresh pages for the next, and these page faults cost as much as the rest of the call."""
    if platform.libc_ver()[0] != "glibc":
        return
    mallopt = ctypes.CDLL(None).mallopt
    if not (mallopt(_MMAP_THRESHOLD, KEPT) and mallopt(_TRIM_THRESHOLD, KEPT)):
        log.debug("the C library keeps its own ways with freed memory")
