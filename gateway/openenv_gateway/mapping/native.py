"""A tool's schema as its environment gives it, every keyword kept, for hosts that read all of JSON Schema 2020-12. Pure.

MCP wants an object at the root, and the tool's handle goes there too: so `type` is added where it is missing, and a reference
at the root is replaced by what it names. Everything else is the environment's own.
"""

from __future__ import annotations

from copy import deepcopy

from openenv_client.frames import JsonObject
from openenv_gateway.mapping.mirrors import ANNOTATION, Misplaced, mirrors_of
from openenv_gateway.mapping.references import Document, Schema, positions

_DEFINITIONS = ("$defs", "definitions")


def native(document: Document, schema: JsonObject) -> JsonObject | None:
    """The inputSchema for `schema`, which is the document's root or made of its parts by `variants`. None if it is made of
    parts that refer to places of the document other than its definitions: they would lead nowhere.

    Annotations for headers that clients would refuse the whole tool for are left out, all of them (see `mirrors`)."""
    if schema is document.root:
        whole = _opened(document, schema)
    else:
        whole = _of_parts(document, schema)
        if any(not _is_kept(node.get("$ref", "#/$defs/")) for _, node in positions(whole)):
            return None
    whole = {**whole, "type": "object"}
    try:
        mirrors_of(whole)
    except Misplaced:
        whole = deepcopy(whole)
        for _, node in positions(whole):
            node.pop(ANNOTATION, None)
    return whole


def _of_parts(document: Document, variant: JsonObject) -> JsonObject:
    """`variant` is {"allOf": [what is common to all variants, the one]}."""
    common, branch = variant["allOf"]
    own = _opened(document, branch)
    definitions = {keyword: document.root[keyword] for keyword in _DEFINITIONS if keyword in document.root}
    return {**definitions, **own, **({"allOf": [*own.get("allOf", ()), common]} if common else {})}


def _opened(document: Document, schema: Schema) -> JsonObject:
    """The schema with what it refers to at its top in place of the reference. (References in circles have been refused.)"""
    whole: JsonObject = dict(schema) if isinstance(schema, dict) else {}
    while "$ref" in whole:
        target = document.follow(whole.pop("$ref"))
        whole = {**(target if isinstance(target, dict) else {}), **whole}
    return whole


def _is_kept(reference: str) -> bool:
    return reference.startswith(("#/$defs/", "#/definitions/")) or "/" not in reference[1:] and len(reference) > 1
