"""`from_docker_image` and `from_env`: a handle that starts a server and connects a client when it is used, once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Generator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from openenv_client.errors import ProviderError
from openenv_client.owned import OwnedProvider
from openenv_client.progress import Report
from openenv_client.providers.space import space_image, space_repository
from openenv_client.sync_client import SyncEnvClient
from openenv_client.threads import LoopThread

if TYPE_CHECKING:
    from openenv_client.env_client import EnvClient

ClientT = TypeVar("ClientT", bound="EnvClient[Any, Any, Any]")

_START_ARGUMENTS = ("port", "env_vars", "workers")


@dataclass(frozen=True)
class Recipe:
    """A provider and the arguments of its start."""

    provider: Any
    arguments: tuple[Any, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


class Bootstrap(Coroutine[Any, Any, ClientT], Generic[ClientT]):
    """Starts a server and connects a client to it, when it is used; exactly once, in one of these ways:

        env = await handle                     async with handle as env: ...
        env = asyncio.run(handle)              with handle as env: ...            (env is a SyncEnvClient)
        env = handle.sync()

    Whatever fails, the provider is stopped. The client owns the provider and stops it when it is closed, which the `with` forms
    do. A second use raises RuntimeError.
    """

    def __init__(self, client: Callable[..., ClientT], recipe: Callable[[], Recipe], progress: Report | None = None) -> None:
        """`client` makes the client, given `base_url` and `provider`. `recipe` is asked for when the handle is used: making a
        provider may already look for docker or uv."""
        self._client, self._recipe, self._progress = client, recipe, progress
        self._used = False
        self._coroutine: Coroutine[Any, Any, ClientT] | None = None
        self._open: ClientT | None = None
        self._open_sync: SyncEnvClient[Any, Any, Any] | None = None

    def __repr__(self) -> str:
        how = "already resolved" if self._used else "pending (await, run, or call .sync())"
        return f"<{type(self).__name__} {how}>"

    def __await__(self) -> Generator[Any, Any, ClientT]:
        return self._resolve_async().__await__()

    def send(self, value: Any) -> Any:
        """Of a coroutine, for asyncio.run and create_task."""
        if self._coroutine is None or inspect.getcoroutinestate(self._coroutine) == inspect.CORO_CLOSED:
            self._coroutine = self._resolve_async()
        return self._coroutine.send(value)

    def throw(self, *error: Any) -> Any:
        """Of a coroutine."""
        if self._coroutine is None:
            self._coroutine = self._resolve_async()
        return self._coroutine.throw(*error)

    def close(self) -> None:
        """Of a coroutine: it is not carried on with."""
        if self._coroutine is not None:
            self._coroutine.close()

    def sync(self) -> SyncEnvClient[Any, Any, Any]:
        """Start, connect and return a client with blocking methods."""
        self._use()
        thread = LoopThread()

        try:
            return thread.run(lambda: self._resolve(thread)).sync()
        except BaseException:
            thread.stop()
            raise

    async def __aenter__(self) -> ClientT:
        self._open = await self
        return self._open

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._open is not None:
            await self._open.close()

    def __enter__(self) -> SyncEnvClient[Any, Any, Any]:
        self._open_sync = self.sync()
        return self._open_sync

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._open_sync is not None:
            self._open_sync.close()

    def _use(self) -> None:
        if self._used:
            raise RuntimeError(
                "This bootstrap handle has already been resolved; call the factory again to start a new environment."
            )
        self._used = True

    async def _resolve_async(self) -> ClientT:
        self._use()
        return await self._resolve(None)

    async def _resolve(self, thread: LoopThread | None) -> ClientT:
        recipe = self._recipe()
        starting = OwnedProvider(recipe.provider, progress=self._progress, one_bound=True)
        url = await starting.start(*recipe.arguments, **recipe.options)
        try:
            client = self._client(base_url=url, provider=recipe.provider)
        except BaseException:
            await starting.stop_after_failure()
            raise
        client._claims.claim("sync" if thread else "async")
        if thread is not None:
            SyncEnvClient(client, thread)
        try:
            await client.connect()
            return client
        except BaseException:
            await client._close_after_failure()
            raise


def docker_recipe(image: str, provider: Any, options: Mapping[str, Any]) -> Recipe:
    """A container of the image. Raises ProviderError if there is no provider for it, TypeError for one of the other family."""
    provider = _docker() if provider is None else provider
    if not hasattr(provider, "start_container"):
        raise TypeError(f"{type(provider).__name__} cannot start an image: it has no start_container()")
    return Recipe(provider, (image,), options)


def space_recipe(repo_id: str, use_docker: bool, provider: Any, options: Mapping[str, Any]) -> Recipe:
    """A Hugging Face Space, from its image or by uv from its repository.

    Raises ValueError for options that a given provider could not take, RuntimeError if docker or uv is missing.
    """
    rest = dict(options)
    start = {name: rest.pop(name) for name in _START_ARGUMENTS if name in rest}
    if use_docker:
        image = space_image(repo_id, rest.pop("tag", "latest"))
        return docker_recipe(image, provider, {**start, **rest})
    if provider is None:
        project = rest.pop("project_path", None) or space_repository(repo_id)
        provider = import_module("openenv_client.providers.uv").UVProvider(project_path=project, **rest)
    elif rest:
        raise ValueError("provider_kwargs cannot be used when supplying a provider instance")
    return Recipe(provider, (), start)


def _docker() -> Any:
    try:
        return import_module("openenv_client.providers.docker").LocalDockerProvider()
    except ModuleNotFoundError as error:
        verbs = "start_container, stop_container and wait_for_ready"
        raise ProviderError(f"{error}; or pass provider=, which has {verbs}") from error
