"""openenv_gateway.transports.access: an Authorization header to a principal, a place to the scope that it needs."""

from __future__ import annotations

from pathlib import Path

import pytest
from testkit.gateways import environment_settings, gateway_settings

from openenv_gateway.transports.access import EVERYBODY, NOBODY, Access, needed_scope
from openenv_gateway.transports.guards import Refused
from openenv_gateway.transports.token_file import TokenFile
from openenv_gateway.transports.tokens import GRANTED, Principal, TokenScope

AGENT, OPERATOR = "a" * 32, "o" * 32
MCP, RESET = "/envs/chess/mcp", "/envs/chess/reset"


@pytest.fixture
def access(tmp_path: Path) -> Access:
    path = tmp_path / "tokens"
    path.write_text(f"agent blue {AGENT}\noperator ci {OPERATOR}\n")
    path.chmod(0o600)
    return Access(TokenFile(path))


def bearer(token: str) -> list[bytes]:
    return [f"Bearer {token}".encode()]


def refused(access: Access, path: str, credentials: list[bytes]) -> tuple[int, str]:
    """The status and the challenge."""
    with pytest.raises(Refused) as caught:
        access.admit(path, credentials)
    assert caught.value.message
    assert not any(token in caught.value.message for token in (AGENT, OPERATOR))
    return caught.value.status, dict(caught.value.headers).get("www-authenticate", "")


@pytest.mark.parametrize(
    "path",
    ["/health", "/ready", "/schemas/config.schema.json", "/.well-known/oauth-protected-resource", "/envs/chess/health"],
)
def test_open_places_need_no_token(access: Access, path: str) -> None:
    assert access.admit(path, []) is NOBODY
    assert access.admit(path, [b"nonsense"]) is NOBODY


@pytest.mark.parametrize("path", [
    "/mcp", MCP, "/", "/health/", "/ready/x", "/schemas", "//health", "/envs/health", "", "/envs//health", "/envs/a/b/health",
    "/envs/a/schema", "/envs/a/metadata", "/schema", "/x/a/health",
])  # fmt: skip
def test_every_other_place_needs_an_agent(access: Access, path: str) -> None:
    assert needed_scope(path) is TokenScope.AGENT
    assert refused(access, path, [])[0] == 401


@pytest.mark.parametrize("path", ["/ws", "/reset", "/step", "/state", "/envs/a/ws", RESET, "/envs/a/step", "/envs/a/state"])
def test_what_controls_an_environment_needs_an_operator(access: Access, path: str) -> None:
    assert access.admit(path, bearer(OPERATOR)) == Principal("ci", GRANTED[TokenScope.OPERATOR])
    status, challenge = refused(access, path, bearer(AGENT))
    assert (status, challenge) == (403, 'Bearer realm="openenv-gateway", error="insufficient_scope", scope="operator"')


@pytest.mark.parametrize("value", ["Bearer {}", "bearer {}", "BEARER {}", "Bearer   {} ", " Bearer {}\t"])
def test_the_token_may_be_written_in_every_way_that_http_allows(access: Access, value: str) -> None:
    assert access.admit(MCP, [value.format(AGENT).encode()]).name == "blue"


def test_an_operator_may_do_what_agents_may(access: Access) -> None:
    assert access.admit(MCP, bearer(OPERATOR)).name == "ci"


@pytest.mark.parametrize(
    ("credentials", "error"),
    [
        ([], ""),
        ([b""], ""),
        ([b"Bearer"], ""),
        ([b"Bearer "], ""),
        ([b"Basic " + AGENT.encode()], ""),
        ([AGENT.encode()], ""),
        ([b"Bearer:" + AGENT.encode()], ""),
        (bearer("x" * 32), "invalid_token"),
        (bearer(AGENT + " " + AGENT), "invalid_token"),
        (bearer(f'"{AGENT}"'), "invalid_token"),
        ([b"Bearer \xff\x00"], "invalid_token"),
    ],
)
def test_missing_unknown_and_malformed_tokens_are_challenged(access: Access, credentials: list[bytes], error: str) -> None:
    expected = 'Bearer realm="openenv-gateway"' + (f', error="{error}"' if error else "")
    assert refused(access, MCP, credentials) == (401, expected)


def test_two_authorization_headers_are_refused(access: Access) -> None:
    assert refused(access, MCP, bearer(AGENT) * 2)[0] == 400


def test_without_a_token_file_everybody_may_do_everything() -> None:
    access = Access()
    for path in ("/health", MCP, RESET, "/ws"):
        assert access.admit(path, [b"whatever"]) is EVERYBODY


def test_without_a_token_file_nobody_controls_an_environment_for_agents_only() -> None:
    trained = environment_settings("http://127.0.0.1:9", "trained", mapping_exposure="agent")
    access = Access.of(gateway_settings(trained, environment_settings("http://127.0.0.1:9", "chess")))
    assert access.admit("/envs/trained/mcp", []) is access.admit(RESET, []) is EVERYBODY
    for path in ("/envs/trained/reset", "/envs/trained/ws", "/reset"):
        assert refused(access, path, [])[0] == 403


def test_who_was_admitted_is_so_still_while_the_very_token_grants_the_same(access: Access, tmp_path: Path) -> None:
    blue = access.admit(MCP, bearer(AGENT))
    assert access.still_admits(blue)
    for lines in (f"agent blue {OPERATOR}", f"operator blue {AGENT}", f"agent red {AGENT}"):
        (tmp_path / "tokens").write_text(lines)
        assert not Access(TokenFile(tmp_path / "tokens")).still_admits(blue)
    (tmp_path / "tokens").write_text(f"agent blue {OPERATOR}\nagent blue {AGENT}")
    assert Access(TokenFile(tmp_path / "tokens")).still_admits(blue)
    assert Access().still_admits(EVERYBODY)
