"""The members of structuredContent and `_meta`, and their assembly to one result. Pure."""

from __future__ import annotations

from openenv_client.frames import JsonObject, Observation
from openenv_gateway.mapping.blocks import capped, text_block
from openenv_gateway.mapping.content import Gallery, may_hold_media
from openenv_gateway.mapping.cuts import Encoded, cut, encode
from openenv_gateway.mapping.notes import METADATA, REWARD, Notes, finite, late_meta, observation_shown, told_reward
from openenv_gateway.mapping.options import MappingOptions
from openenv_gateway.mapping.plain import plain_text
from openenv_gateway.mapping.whole import JSON, Part, Whole, kept

NEXT_EPISODE = "call reset to start the next episode"
WHOLE = ("observation", "state")
"""The members of structuredContent that may be cut as a whole: they stay objects."""


def observation_members(reply: Observation, options: MappingOptions) -> JsonObject:
    """{"observation", "reward", "done"} as the agent may see them; "next" when the episode is over and it has reset."""
    observation = observation_shown(reply.observation, reply.reward, reply.done, options)
    if reply.metadata and not observation.get("metadata"):
        observation = {**observation, "metadata": reply.metadata}
    members: JsonObject = {"observation": observation}
    if options.reward == "visible":
        members["reward"] = finite(reply.reward)
    members["done"] = reply.done
    if reply.done and options.exposure == "full":
        members["next"] = NEXT_EPISODE
    return members


def observation_meta(reply: Observation, options: MappingOptions, notes: Notes) -> JsonObject:
    """The result's `_meta`: the notes', the reward if it belongs there or JSON has no number for it, and the frame's metadata
    where the observation has other metadata of its own."""
    meta = notes.meta()
    if notes.late is not None:
        meta.update(late_meta(notes.late, options))
    if options.reward == "meta" or (options.reward == "visible" and finite(reply.reward) != reply.reward):
        meta[REWARD] = told_reward(reply.reward)
    own = reply.observation.get("metadata")
    if reply.metadata and own and own != reply.metadata:
        meta[METADATA] = reply.metadata
    return meta


def assemble(structured: JsonObject, meta: JsonObject, options: MappingOptions, whole: Whole | None) -> JsonObject:
    """The CallToolResult of these members: pictures taken out, cut to size, told in the first text block."""
    gallery = Gallery()
    taken, body = without_media(structured, gallery)
    shown, text = cut_and_encoded(taken, body, options, whole)
    if options.text == "plain" and "observation" in taken:
        plain = plain_text(taken)
        text = text if plain is None else capped(plain, options.max_result_bytes, whole)
    return {"content": [text_block(text), *gallery.blocks], "structuredContent": shown, "isError": False, "_meta": meta}


def without_media(structured: JsonObject, gallery: Gallery) -> tuple[JsonObject, bytes]:
    """The value whose pictures and sounds `gallery` took (the same one if it has none), and its JSON."""
    taken = gallery.take(structured) if may_hold_media(structured) else structured
    return taken, encode(taken)


def cut_and_encoded(
    structured: JsonObject, body: bytes, options: MappingOptions, whole: Whole | None
) -> tuple[JsonObject, str]:
    """structuredContent, of which `body` is the JSON, within the operator's limit; and its JSON. What is cut goes whole to
    `whole`."""
    if len(body) > options.max_result_bytes:
        structured = cut(structured, options.max_result_bytes, kept(whole, Part(JSON, body)), WHOLE)
        body = encode(structured)
    return Encoded(structured, body), body.decode()
