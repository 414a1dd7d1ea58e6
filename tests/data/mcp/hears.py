"""An MCP client on the first major version of the official Python library: hears how far a call is, and recalls another."""

import asyncio
import json
import sys

from mcp import ClientSession, types
from mcp.client.streamable_http import streamablehttp_client

TOOL = "trigger-long-running-operation"


async def main(url: str) -> None:
    async with streamablehttp_client(url) as (read, write, named):
        async with ClientSession(read, write) as session:
            await session.initialize()
            heard = []

            async def hears(done: float, total: float | None, message: str | None) -> None:
                heard.append([done, total])

            called = await session.call_tool(TOOL, {"duration": 1, "steps": 4}, progress_callback=hears)
            begun = asyncio.Event()

            async def begins(done: float, total: float | None, message: str | None) -> None:
                begun.set()

            own = session._request_id
            endless = {"duration": 600, "steps": 6000}
            call = asyncio.create_task(session.call_tool(TOOL, endless, progress_callback=begins))
            await begun.wait()
            params = types.CancelledNotificationParams(requestId=own, reason="enough")
            cancelled = types.CancelledNotification(method="notifications/cancelled", params=params)
            await session.send_notification(types.ClientNotification(cancelled))
            call.cancel()
            await session.list_tools()
            print(json.dumps([heard, called.content[0].text, named() is not None]))


asyncio.run(main(sys.argv[1]))
