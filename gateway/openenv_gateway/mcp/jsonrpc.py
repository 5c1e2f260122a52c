"""JSON-RPC 2.0 messages as frozen values. Pure."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from openenv_client.frames import JsonObject
from openenv_gateway.mapping.cuts import Encoded

log = logging.getLogger(__name__)

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
HEADER_MISMATCH = -32020
UNSUPPORTED_VERSION = -32022

RequestId = str | int


class RpcError(Exception):
    """A protocol fault, answered as a JSON-RPC error. `data` follows the published error_data schema or the protocol's own."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data

    def as_object(self) -> JsonObject:
        error: JsonObject = {"code": self.code, "message": self.message}
        return error if self.data is None else {**error, "data": self.data}


class Request(NamedTuple):
    id: RequestId
    method: str
    params: JsonObject


@dataclass(frozen=True, slots=True)
class Notification:
    method: str
    params: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Response:
    """A client's answer to a request of ours. We send none, so these are accepted and dropped."""

    id: Any


Message = Request | Notification | Response


def decode(body: bytes) -> Any:
    """The JSON value of a body. Raises RpcError -32700 for what is no JSON (in UTF-8)."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise RpcError(PARSE_ERROR, f"Parse error: the body is not JSON ({error})") from error


def parse_message(value: Any) -> Message:
    """One message from a decoded value. Raises RpcError -32600 naming what is wrong with it."""
    if not isinstance(value, dict):
        raise RpcError(INVALID_REQUEST, "Invalid request: a message is one JSON object")
    if value.get("jsonrpc") != "2.0":
        raise RpcError(INVALID_REQUEST, 'Invalid request: "jsonrpc" must be "2.0"')
    method = value.get("method")
    if method is None and "id" in value and ("result" in value or "error" in value):
        return Response(value["id"])
    if not isinstance(method, str):
        raise RpcError(INVALID_REQUEST, 'Invalid request: "method" must be a string')
    params = {} if value.get("params") is None else value["params"]
    if not isinstance(params, dict):
        raise RpcError(INVALID_REQUEST if "id" not in value else INVALID_PARAMS, '"params" must be an object')
    if "id" not in value:
        return Notification(method, params)
    identity = value["id"]
    if not isinstance(identity, str | int) or isinstance(identity, bool):
        raise RpcError(INVALID_REQUEST, 'Invalid request: "id" must be a string or an integer')
    return Request(identity, method, params)


def result_message(identity: RequestId, result: JsonObject) -> bytes:
    """The response. A result that is no JSON (a lone surrogate, an integer beyond 64 bits) becomes the error that says so."""
    structured = result.get("structuredContent")
    if isinstance(structured, Encoded):
        result = {**result, "structuredContent": orjson.Fragment(structured.json)}
    try:
        return orjson.dumps({"jsonrpc": "2.0", "id": identity, "result": result})
    except TypeError as error:
        log.error("a result cannot be sent: %s", error)
        return error_message(identity, RpcError(INTERNAL_ERROR, f"The result cannot be written as JSON: {error}"))


def error_message(identity: RequestId | None, error: RpcError) -> bytes:
    return orjson.dumps({"jsonrpc": "2.0", "id": identity, "error": error.as_object()})


def notification_message(method: str, params: JsonObject) -> bytes:
    message: JsonObject = {"jsonrpc": "2.0", "method": method}
    return orjson.dumps({**message, "params": params} if params else message)


def id_of(value: Any) -> RequestId | None:
    """The id to answer an invalid message with: its own where it has a usable one, else null (JSON-RPC 2.0, section 5)."""
    identity = value.get("id") if isinstance(value, dict) else None
    return identity if isinstance(identity, str | int) and not isinstance(identity, bool) else None
