"""The published contracts, as JSON Schemas (2020-12), one `<name>.schema.json` each: readable by any language.

    names()      the names of all of them
    load(name)   one, parsed; the caller's own copy
    raw(name)    the same as the bytes of its file, for serving
"""

from __future__ import annotations

from openenv_gateway_schemas.loader import load, names, raw

__all__ = ["load", "names", "raw"]
