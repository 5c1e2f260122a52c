"""launched.py: which variables a server gets. The verbs are checked by the contract (test_contract.py)."""

from __future__ import annotations

import pytest

from openenv_client.providers.launched import reachable_url, server_environment


def test_python_servers_repeat_their_sets_and_print_at_once_unless_told_otherwise() -> None:
    assert server_environment({}, {}, {}, 5) == {"PYTHONHASHSEED": "0", "PYTHONUNBUFFERED": "1", "PORT": "5"}
    assert server_environment({"PYTHONHASHSEED": "7"}, {}, {}, 5)["PYTHONHASHSEED"] == "7"
    assert server_environment({}, {"PYTHONUNBUFFERED": ""}, {}, 5)["PYTHONUNBUFFERED"] == ""


def test_the_variables_of_the_call_win_over_those_of_the_provider_and_these_over_ours() -> None:
    found = server_environment({"A": "1", "B": "1", "C": "1"}, {"B": "2", "C": "2"}, {"C": "3"}, 5)
    assert (found["A"], found["B"], found["C"]) == ("1", "2", "3")


def test_the_port_of_the_base_url_is_the_port_of_the_server_whatever_else_is_set() -> None:
    assert server_environment({"PORT": "80"}, {"PORT": "81"}, {"PORT": "82"}, 8000)["PORT"] == "8000"


@pytest.mark.parametrize(
    ("host", "reachable"),
    [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("::", "[::1]"), ("::1", "[::1]"), ("localhost", "localhost")],
)
def test_the_base_url_is_one_that_a_client_can_reach(host: str, reachable: str) -> None:
    assert reachable_url(host, 8000) == f"http://{reachable}:8000"
