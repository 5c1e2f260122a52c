"""One program for two clients: `same_program.py MODULE` reads lines "NAME URL" and prints what NAME saw at URL, as JSON.

MODULE is `openenv.core` (OpenEnv's own client) or `openenv_client` (ours). Everything but the import is the same.
"""

import asyncio
import importlib
import json
import sys

module = importlib.import_module(sys.argv[1])
GenericEnvClient, GenericAction = module.GenericEnvClient, module.GenericAction


def seen(result):
    observation = {name: value for name, value in result.observation.items() if name != "session"}
    return [observation, result.reward, result.done, result.metadata]


async def outcome(call):
    try:
        result = await call
    except RuntimeError as error:  # any other class would end the program, and so be seen
        return ["RuntimeError", str(error)]
    return seen(result) if hasattr(result, "observation") else result


async def played(url):
    """Resets with and without arguments, 50 steps, bad actions, states, sessions beside each other, closing and coming back."""
    env = GenericEnvClient(base_url=url)
    log = [repr(env.state()).replace("_AutoAsyncResult", "..."), env.base_url == url]
    log.append(await outcome(env.reset(seed=5, episode_id="e1", target=60, label="red")))
    for number in range(50):
        log.append(await outcome(env.step({"amount": number % 5 - 1})))
    for bad in ({"amount": 99}, {"amount": "x"}, {}, {"amount": 1, "unknown": 2}, GenericAction(amount=2, remark="hi")):
        log.append(await outcome(env.step(bad)))
    log.append(await outcome(env.state()))
    other = await env.new_session()
    log += [type(other).__name__, await outcome(other.reset(label="blue")), await outcome(other.step({"amount": 3}))]
    log += [await outcome(env.state()), await outcome(other.state())]
    await env.close()
    log.append(await outcome(env.reset(label="again")))
    await env.disconnect()
    log.append(await outcome(env.state()))
    await env.close()
    return log


def played_sync(url):
    """The same client in sync code, in both of its forms."""
    with GenericEnvClient(base_url=url).sync() as env:
        log = [seen(env.reset(seed=1)), seen(env.step({"amount": 4})), env.state(), env.base_url == url]
        other = env.new_session()
        log += [type(other).__name__, seen(other.reset()), env.state(), type(env.async_client).__name__]
    env = GenericEnvClient(base_url=url)
    log += [seen(env.reset(label="plain")), env.state()]
    env.close()
    try:
        asyncio.run(entered(env))
    except RuntimeError as error:
        log.append(str(error))
    return log


async def entered(env):
    async with env:
        pass


async def refused(url):
    """More sessions than the server has."""
    holder, second = GenericEnvClient(base_url=url), GenericEnvClient(base_url=url)
    await holder.reset()
    log = [await outcome(second.reset())]
    log.append(await outcome(holder.step({"amount": 1})))
    await second.close()
    await holder.close()
    return log


def wrong(_):
    """What constructors say."""
    log = []
    for arguments in ({}, {"base_url": "http://x", "mode": "nonsense"}, {"base_url": "http://x", "mode": ""}):
        try:
            GenericEnvClient(**arguments)
        except ValueError as error:
            log.append(str(error))
    return [*log, GenericEnvClient(base_url="http://x/").base_url, repr(GenericAction(a=1))]


PLAYS = {play.__name__: play for play in (played, played_sync, refused, wrong)}

for line in sys.stdin:
    name, base_url = line.split()
    result = PLAYS[name](base_url)
    print(json.dumps(asyncio.run(result) if asyncio.iscoroutine(result) else result), flush=True)
