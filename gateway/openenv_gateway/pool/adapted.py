"""Any provider with OpenEnv's verbs, of either family, as the pool drives it; what it says, without the operator's secrets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Protocol

from openenv_client.errors import LaunchFailed, ProviderError
from openenv_client.owned import check_startable, verbs_of
from openenv_client.providers.base import Watchable
from openenv_client.providers.hiding import Hidden
from openenv_gateway.settings import Source


class Launcher(Protocol):
    """The verbs of a provider that the pool uses, all of them synchronous (see `openenv_client.providers.base`)."""

    def start(self) -> str: ...
    def stop(self) -> None: ...
    def wait_for_ready(self, timeout_s: float) -> None: ...
    def poll(self) -> int | None: ...
    def logs(self, tail: int) -> str: ...


class Adapted:
    """A Launcher over somebody's provider, which `start` is called on with these arguments. Of one that is not Watchable it is
    not known when its server ends: it counts as running until it is stopped, and connections tell."""

    def __init__(self, provider: Any, start: Mapping[str, Any]) -> None:
        """Raises ProviderError for what is no provider, or cannot be started so."""
        try:
            self._verbs = verbs_of(provider)
            check_startable(provider, (), start)
        except (TypeError, ValueError) as error:
            raise ProviderError(f"{type(provider).__name__}: {error}") from error
        self._provider, self._start = provider, start
        self._is_container = hasattr(provider, "start_container")
        self._url: str | None = None

    def start(self) -> str:
        self._url = self._verbs.start(**self._start)
        return self._url

    def wait_for_ready(self, timeout_s: float) -> None:
        place = (self._url,) if self._is_container else ()
        self._provider.wait_for_ready(*place, timeout_s=timeout_s)

    def stop(self) -> None:
        self._verbs.stop()
        self._url = None
        close: Callable[[], object] = getattr(self._provider, "close", _nothing)
        close()

    def poll(self) -> int | None:
        if isinstance(self._provider, Watchable):
            return self._provider.poll()
        return 0 if self._url is None else None

    def logs(self, tail: int) -> str:
        return self._provider.logs(tail) if isinstance(self._provider, Watchable) else ""


class Discreet:
    """A Launcher over a foreign provider, whose errors and logs do not show what is hidden. (Ours hide it themselves.)"""

    def __init__(self, inner: Launcher, hidden: Hidden) -> None:
        self._inner, self._hidden = inner, hidden

    def start(self) -> str:
        with self._hiding():
            return self._inner.start()

    def stop(self) -> None:
        with self._hiding():
            self._inner.stop()

    def wait_for_ready(self, timeout_s: float) -> None:
        with self._hiding():
            self._inner.wait_for_ready(timeout_s)

    def poll(self) -> int | None:
        return self._inner.poll()

    def logs(self, tail: int) -> str:
        return self._hidden(self._inner.logs(tail))

    @contextmanager
    def _hiding(self) -> Iterator[None]:
        """The error is made anew, and not raised from the old one, whose text a traceback would show."""
        try:
            yield
        except LaunchFailed as error:
            hidden: Exception = type(error)(error.what, self._hidden(error.reason), self._hidden(error.log))
        except ProviderError as error:
            hidden = type(error)(self._hidden(str(error)))
        except Exception as error:  # noqa: BLE001  (anybody's class may raise anything)
            hidden = ProviderError(f"{type(error).__name__}: {self._hidden(str(error))}")
        else:
            return
        raise hidden from None


def class_provider(source: Source) -> Launcher:
    """A provider of the class that a `py:` source names, MODULE:CLASS. Raises ProviderError if it cannot be had."""
    return Discreet(_of_class(source), Hidden(secrets_of(source)))


def _of_class(source: Source) -> Adapted:
    module, _, name = source.target.partition(":")
    try:
        kind = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ProviderError(f"{source}: {error}. Install its package into the environment that the gateway runs in") from error
    try:
        provider = kind(**source.arguments)
    except TypeError as error:
        raise ProviderError(f"{source}: it cannot be made with the arguments that are configured: {error}") from error
    variables = {"env_vars": dict(source.env_vars)} if source.env_vars else {}
    return Adapted(provider, {**source.start, **variables})


def secrets_of(source: Source) -> dict[str, str]:
    """What must not be told of a source, by name: its variables, and the texts among the arguments of its class."""
    texts = {**source.arguments, **source.start}
    return {**{name: text for name, text in texts.items() if isinstance(text, str) and name != "image"}, **source.env_vars}


def _nothing() -> None:
    return None
