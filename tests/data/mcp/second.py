"""The same on the second major version, in the way of negotiation that the second argument names."""

import asyncio
import json
import sys

from mcp import Client, MCPError


async def main(url: str, mode: str) -> None:
    async with Client(url, mode=mode) as client:
        tools = await client.list_tools()
        called = await client.call_tool("list_tables", {})
        failed = await client.call_tool("query_records", {"table_name": "nosuch"})
        try:
            await client.call_tool("nope", {})
            refused = None
        except MCPError as error:
            refused = error.error.message
        server = client.server_info.name if client.server_info else "sqlite"
    print(json.dumps([server, [tool.name for tool in tools.tools], called.content[0].text, refused, failed.is_error, failed.content[0].text]))


asyncio.run(main(*sys.argv[1:]))
