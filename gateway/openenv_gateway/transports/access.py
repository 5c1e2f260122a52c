"""Who may call what: an Authorization header to a principal, and a place to the scope that it needs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from starlette.types import Scope

from openenv_gateway.mcp.caller import ANONYMOUS
from openenv_gateway.settings import GatewaySettings
from openenv_gateway.transports.guards import Refused
from openenv_gateway.transports.token_file import TokenFile
from openenv_gateway.transports.tokens import Principal, TokenScope

PRINCIPAL = "openenv.principal"
"""The key in a request's ASGI scope under which its Principal stands, once the guard let it through."""

EVERYBODY = Principal(ANONYMOUS, frozenset(TokenScope))
"""The one principal of a gateway without tokens."""
NOBODY = Principal(ANONYMOUS, frozenset())
"""Who calls an open place of a gateway with tokens."""

OPEN = frozenset({"/health", "/ready"})
OPEN_BELOW = ("/schemas/", "/.well-known/")
"""What probes and validators read; and where clients that were refused look for an authorisation server: "there is none" (404)
must reach them."""
ENVIRONMENT_HEALTH = re.compile(r"/envs/[^/]+/health")
"""Open too: OpenEnv's clients wait for it without credentials, and it starts nothing. What an environment is (`/schema`,
`/metadata`) is for whoever may play it."""
OPERATOR = frozenset({"ws", "reset", "step", "state"})
"""The last part of the places that control an environment."""

REALM = 'Bearer realm="openenv-gateway"'


class Access:
    """Without `tokens` everybody may do everything, but control the environments in `agents_only`: nobody may."""

    def __init__(self, tokens: TokenFile | None = None, agents_only: frozenset[str] = frozenset()) -> None:
        self._tokens, self._agents_only = tokens, agents_only

    @classmethod
    def of(cls, settings: GatewaySettings) -> Access:
        """What the settings ask for. Raises BadTokenFile."""
        agents_only = frozenset(one.name for one in settings.environments if one.mapping.exposure == "agent")
        return cls(None if settings.token_file is None else TokenFile(settings.token_file), agents_only)

    @property
    def asks_for_tokens(self) -> bool:
        """Whether callers need a token at all."""
        return self._tokens is not None

    def still_admits(self, principal: Principal) -> bool:
        """Whether whoever was admitted earlier would be admitted again, with the same rights."""
        return self._tokens is None or self._tokens.tokens.grants(principal)

    def admit(self, path: str, credentials: Sequence[bytes]) -> Principal:
        """Who calls. `credentials` are the values of the request's Authorization headers.

        Raises Refused: 401 without a known token where one is needed, 403 with one whose scope does not reach, 400 for several.
        """
        needed = needed_scope(path)
        if self._tokens is None:
            if needed is TokenScope.OPERATOR and self._for_agents_only(path):
                raise Refused(403, "Agents may not control this environment, and without --token-file nobody is an operator.")
            return EVERYBODY
        if needed is None:
            return NOBODY
        principal = self._principal(self._tokens, credentials)
        if needed not in principal.scopes:
            challenge = f'{REALM}, error="insufficient_scope", scope="{needed}"'
            raise Refused(403, f"This needs a token with the scope {needed}.", (("www-authenticate", challenge),))
        return principal

    def knows(self, credentials: Sequence[bytes]) -> bool:
        """Whether who calls an open place may be told what is not for everybody."""
        try:
            return self._tokens is None or bool(self._principal(self._tokens, credentials))
        except Refused:
            return False

    @property
    def grants(self) -> object:
        """What the answers of `admit` depend on: they are the same as long as this is the same object."""
        return None if self._tokens is None else self._tokens.tokens

    @staticmethod
    def _principal(tokens: TokenFile, credentials: Sequence[bytes]) -> Principal:
        if not credentials:
            raise _unauthorized("This gateway wants a token: send the header Authorization: Bearer TOKEN.")
        if len(credentials) > 1:
            raise Refused(400, "A request carries at most one Authorization header")
        scheme, _, token = credentials[0].strip().partition(b" ")
        if scheme.lower() != b"bearer" or not token:
            raise _unauthorized("The header must be Authorization: Bearer TOKEN.")
        principal = tokens.tokens.find(token.strip())
        if principal is None:
            raise _unauthorized("The token is unknown or was withdrawn: ask who runs the gateway for one.", "invalid_token")
        return principal

    def _for_agents_only(self, path: str) -> bool:
        if path.startswith("/envs/"):
            return path.split("/")[2] in self._agents_only
        return bool(self._agents_only)  # at the root there is one environment


def principal_in(scope: Scope) -> Principal:
    """Who made this request. Raises KeyError for a scope that never passed the guard."""
    principal: Principal = scope[PRINCIPAL]
    return principal


def needed_scope(path: str) -> TokenScope | None:
    """The scope that a place needs; None for the open ones."""
    last = path.rpartition("/")[2]
    if path in OPEN or path.startswith(OPEN_BELOW) or last == "health" and ENVIRONMENT_HEALTH.fullmatch(path):
        return None
    return TokenScope.OPERATOR if last in OPERATOR else TokenScope.AGENT


def _unauthorized(message: str, error: str | None = None) -> Refused:
    challenge = REALM if error is None else f'{REALM}, error="{error}"'
    return Refused(401, message, (("www-authenticate", challenge),))
