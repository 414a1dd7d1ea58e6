"""An MCP client of the official library over HTTP with SSE: greets, lists, calls, and hears how far a call is."""

import asyncio
import json
import sys

from mcp import ClientSession
from mcp.client.sse import sse_client


async def main(url: str) -> None:
    async with sse_client(url) as (read, write):
        async with ClientSession(read, write) as session:
            greeting = await session.initialize()
            listed = await session.list_tools()
            heard = []

            async def hears(done: float, total: float | None, message: str | None) -> None:
                heard.append([done, total])

            added = await session.call_tool("add", {"a": 1, "b": 2})
            told = await session.call_tool("tell", {"what": "it"}, progress_callback=hears)
            name = getattr(greeting, "serverInfo", None) or greeting.server_info
            print(
                json.dumps(
                    [name.name, [tool.name for tool in listed.tools], added.content[0].text, told.content[0].text, heard]
                )
            )


asyncio.run(main(sys.argv[1]))
