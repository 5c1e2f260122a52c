"""Which regular expressions of an environment are shown to hosts: those that Python and JavaScript surely read alike. Pure.

One that a host cannot compile hides the whole tool list there. Whether a value matches is the validator's affair.
"""

from __future__ import annotations

import re
import warnings

_PORTABLE = re.compile(
    r"""(?: [\w\ !"#%&',/:;<=>@`~.^$|)-]
          | \((?:\?:)?(?![?*+{])
          | \\[dDwWsS^$\\.*+?()\[\]{}|/]
          | \[\^?(?:[\w\ !"#%&'()*+,./:;<=>?@`~$|{}]|(?<=\w)-(?=\w)|-(?=\])|\\[dDwWsS\\\]\[^.$*+?(){}|/-](?!-\w))+\]
          | (?<=[\w)\].]) (?: [*+?] | \{\d+(?:,\d*)?\} ) \??
        )*""",
    re.VERBOSE | re.ASCII,
)


def is_portable(source: str) -> bool:
    """Whether JavaScript and Python read the pattern alike, and Python has no doubts about it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            re.compile(source)
    except (re.error, OverflowError, RecursionError, Warning):
        return False
    return _PORTABLE.fullmatch(source) is not None
