"""An MCP client on the first major version of the official Python library: greets, lists, calls, and is refused."""

import asyncio
import json
import sys

from mcp import ClientSession, McpError
from mcp.client.streamable_http import streamablehttp_client


async def main(url: str) -> None:
    async with streamablehttp_client(url) as (read, write, _):
        async with ClientSession(read, write) as session:
            greeting = await session.initialize()
            tools = await session.list_tools()
            called = await session.call_tool("list_tables", {})
            failed = await session.call_tool("query_records", {"table_name": "nosuch"})
            await session.send_ping()
            try:
                await session.call_tool("nope", {})
                refused = None
            except McpError as error:
                refused = error.error.message
    print(json.dumps([greeting.serverInfo.name, [tool.name for tool in tools.tools], called.content[0].text, refused, failed.isError, failed.content[0].text]))


asyncio.run(main(sys.argv[1]))
