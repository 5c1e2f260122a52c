"""ports.py: a reserved port is nobody else's, yet free for the server that it is meant for."""

from __future__ import annotations

import socket

import pytest

from openenv_client.errors import ProviderError
from openenv_client.providers.ports import PortReservation


def listen(port: int, host: str = "127.0.0.1", reuse: bool = True) -> socket.socket:
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(reuse))
    try:
        server.bind((host, port))
    except OSError:
        server.close()
        raise
    server.listen()
    return server


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_a_server_that_reuses_addresses_can_listen_on_a_reserved_port(host: str) -> None:
    with PortReservation("127.0.0.1") as reserved, listen(reserved.port, host):
        assert reserved.held
        socket.create_connection(("127.0.0.1", reserved.port), timeout=5).close()


def test_a_reserved_port_is_kept_from_others_and_nobody_listens_on_it() -> None:
    with PortReservation("127.0.0.1") as reserved:
        with pytest.raises(OSError, match="Address already in use"):
            listen(reserved.port, reuse=False)
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", reserved.port)) != 0


def test_a_released_port_is_free_for_anybody() -> None:
    reserved = PortReservation("127.0.0.1")
    reserved.release()
    reserved.release()
    assert not reserved.held
    listen(reserved.port, reuse=False).close()


def test_a_port_on_which_somebody_listens_is_refused_by_its_number() -> None:
    with PortReservation("127.0.0.1") as free:
        taken = free.port
    with listen(taken), pytest.raises(ProviderError, match=f"Port {taken} on 127.0.0.1 is in use by another process"):
        PortReservation("127.0.0.1", taken)


def test_a_host_that_is_not_of_this_machine_is_refused() -> None:
    with pytest.raises(ProviderError, match=r"Cannot use port 0 on 192\.0\.2\.1"):
        PortReservation("192.0.2.1")
