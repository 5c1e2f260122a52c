"""A provider that belongs to a client: started and stopped by it, in threads, since providers block.

    STOPPED ──start──> RUNNING ──stop──> STOPPED
                          └──stop failed──> UNCLEAN ──stop──> STOPPED

`RUNNING` begins before the provider's verb is called and ends when its stop succeeded: whatever happens between, there may be
something to stop.
"""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any

from openenv_client.progress import Report, Reporter
from openenv_client.providers.base import Watchable
from openenv_client.threads import finish, in_thread

logger = logging.getLogger(__name__)


class Phase(Enum):
    """Where a provider stands."""

    STOPPED = "stopped"
    RUNNING = "running"
    UNCLEAN = "its last stop failed"


@dataclass(frozen=True)
class Verbs:
    """What a client asks of a provider, whichever of the two families it is of. `wait` takes the base URL and the seconds that
    are left of the provider's own bound, None if it has none."""

    start: Callable[..., str]
    wait: Callable[[str, float | None], object]
    stop: Callable[[], object]
    bound_s: float | None
    """Seconds that start and wait may take together, where the provider says so."""


class OwnedProvider:
    """One provider, used by one client (and lent to nobody). Its methods are for one event loop at a time."""

    def __init__(
        self, provider: Any, *, running: bool = False, progress: Report | None = None, one_bound: bool = False
    ) -> None:
        """`running`: somebody started it already, and the client is to stop it. `one_bound`: its `context_timeout_s`, if it has
        one, bounds start and wait together; else the wait is bounded as the provider pleases."""
        self._provider, self._progress, self._one_bound = provider, progress, one_bound
        self._phase = Phase.RUNNING if running else Phase.STOPPED

    @property
    def phase(self) -> Phase:
        """Where it stands."""
        return self._phase

    async def start(self, *arguments: Any, **options: Any) -> str:
        """Start it with these arguments and return the base URL once the server is ready.

        Raises ValueError or TypeError for a provider that cannot be started so, before anything is; else what the provider
        raises, after it was stopped. Cancelled, it is stopped as well.
        """
        if self._phase is Phase.UNCLEAN:
            await self.stop()  # what it left behind must not be forgotten with its handle
        verbs = verbs_of(self._provider)
        check_startable(self._provider, arguments, options)
        self._phase = Phase.RUNNING
        try:
            return await self._started(verbs, arguments, options)
        except BaseException:
            await self.stop_after_failure()
            raise

    async def stop(self) -> None:
        """Stop it, once. Raises what its verb raises; then the next call tries again. A cancellation waits for the end."""
        if self._phase is not Phase.STOPPED:
            await finish(self._stop())

    async def _started(self, verbs: Verbs, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> str:
        bound_s = verbs.bound_s if self._one_bound else None
        deadline = None if bound_s is None else time.monotonic() + bound_s
        # Ours may be stopped in the middle of their start; of others nobody promised that, and their start must end first.
        early_stop = verbs.stop if isinstance(self._provider, Watchable) else None
        async with Reporter(self._progress, self._provider) as reporter:
            url = await in_thread(partial(verbs.start, *arguments, **options), early_stop)
            reporter.stage("waiting until it answers")
            left_s = None if deadline is None else max(0.0, deadline - time.monotonic())
            await in_thread(partial(verbs.wait, url, left_s), verbs.stop)
        return url

    async def stop_after_failure(self) -> None:
        """As stop, but what its verb raises is only logged: another failure is about to be raised. It stays to be done."""
        try:
            await self.stop()
        except Exception as error:  # noqa: BLE001
            logger.warning("stopping %s after a failure failed too: %s", type(self._provider).__name__, error)

    async def _stop(self) -> None:
        self._phase = Phase.UNCLEAN
        await in_thread(verbs_of(self._provider).stop)
        self._phase = Phase.STOPPED


def verbs_of(provider: Any) -> Verbs:
    """Raises TypeError for what is no provider."""
    if hasattr(provider, "start_container"):
        return Verbs(provider.start_container, lambda url, _: provider.wait_for_ready(url), provider.stop_container, None)
    if hasattr(provider, "start"):
        stop = getattr(provider, "stop", _nothing)  # what has no stop needs none
        return Verbs(provider.start, partial(_wait, provider), stop, getattr(provider, "context_timeout_s", None))
    raise TypeError("provider must define start_container() or start().")


def check_startable(provider: Any, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> None:
    """Raises ValueError for a container provider that needs arguments when it gets none."""
    if arguments or options or not hasattr(provider, "start_container"):
        return
    if missing := _required(provider.start_container):
        raise ValueError(
            f"{type(provider).__name__} does not support provider-owned startup because start_container() requires "
            f"{', '.join(missing)}. Start the provider manually and pass base_url, or configure a provider with a "
            "constructor-owned image/source."
        )


def _nothing() -> None:
    return None


def _wait(provider: Any, url: str, left_s: float | None) -> object:
    return provider.wait_for_ready() if left_s is None else provider.wait_for_ready(timeout_s=left_s)


def _required(method: Callable[..., object]) -> list[str]:
    """The parameters without a default; none where Python cannot tell (methods written in C)."""
    try:
        parameters = inspect.signature(method).parameters.values()
    except (TypeError, ValueError):
        return []
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [each.name for each in parameters if each.default is inspect.Parameter.empty and each.kind not in variadic]
