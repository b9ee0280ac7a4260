"""Many watchers come and go, and those who stay are told."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from typing import Any

import anyio

from archwright.web.live import Channel


def run_alone(work: Coroutine[Any, Any, None]) -> None:
    """In a thread of its own: playwright leaves a running loop in that of the tests."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, work).result()


async def take(channel: Channel, number: int) -> list[Any]:
    found = []
    async with aclosing(channel.listen()) as changes:
        async for each in changes:
            found.append(each)
            if len(found) == number:
                break
    return found


def test_watchers_who_leave_do_not_stop_the_others() -> None:
    """As browsers leave: their task is cancelled in the middle of waiting, again and again until it has ended."""

    async def main() -> None:
        value = 0
        channel = Channel(lambda: value, pause=0.01)
        assert await take(channel, 1) == [0]
        async with anyio.create_task_group() as leaving:
            for _ in range(50):
                leaving.start_soon(take, channel, 1000)
            await anyio.sleep(0.2)
            leaving.cancel_scope.cancel()
        staying = asyncio.create_task(take(channel, 2))
        await anyio.sleep(0.1)
        value = 1
        async with asyncio.timeout(60):
            assert await staying == [0, 1]
        assert channel._listeners == 0

    run_alone(main())


def test_one_look_serves_all() -> None:
    async def main() -> None:
        looks = 0

        def look() -> int:
            nonlocal looks
            looks += 1
            return 7

        channel = Channel(look, pause=30.0)
        async with asyncio.timeout(60):
            assert await asyncio.gather(*(take(channel, 1) for _ in range(50))) == [[7]] * 50
        assert looks == 1

    run_alone(main())


def test_closing_ends_every_stream() -> None:
    async def main() -> None:
        channel = Channel(lambda: 1, pause=0.01)
        listening = [asyncio.create_task(take(channel, 5)) for _ in range(3)]
        await asyncio.sleep(0.1)
        channel.close()
        async with asyncio.timeout(60):
            assert await asyncio.gather(*listening) == [[1]] * 3

    run_alone(main())


def test_a_look_that_fails_is_told_and_does_not_end_the_watch() -> None:
    async def main() -> None:
        broken = True

        def look() -> str:
            if broken:
                raise OSError("gone")
            return "back"

        channel = Channel(look, pause=0.01)
        staying = asyncio.create_task(take(channel, 2))
        await asyncio.sleep(0.1)
        broken = False
        async with asyncio.timeout(60):
            assert await staying == ["OSError('gone')", "back"]

    run_alone(main())
