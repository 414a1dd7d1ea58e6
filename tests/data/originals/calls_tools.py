"""Lists and calls the tools of a server that a command starts; prints what it gets as JSON. Usage: calls_tools.py COMMAND…"""

import asyncio
import json
import logging
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport

logging.disable()
CALLS = [
    ("list_orders", {}),
    ("list_orders", {"limit": 1}),
    ("create_order", {"item": "rice", "count": 7}),
    ("create_order", {"item": "rice"}),
    ("get_order", {"id": 2}),
    ("get_order", {"id": 9}),
    ("delete_order", {"id": 1}),
    ("list_names", {}),
]


def described(tool) -> list:
    # fastmcp describes an operation without a description by its method and path.
    description = tool.description or ""
    if description.startswith("Executes "):
        description = ""
    return [description, sorted(tool.input_schema["properties"]), sorted(tool.input_schema.get("required", []))]


def words(result) -> list:
    """The words of a failure; those of a result are its structured content, and blanks are none."""
    texts = [block.text for block in result.content if block.text]
    if result.structured_content is not None:
        return []
    return [word for text in texts for word in ["404", "Not Found", "no such order"] if word in text]


async def main(command: str, *arguments: str) -> None:
    async with Client(StdioTransport(command, list(arguments))) as client:
        tools = await client.list_tools()
        listed = {tool.name: described(tool) for tool in tools}
        results = []
        for name, given in CALLS:
            result = await client.call_tool_mcp(name, given)
            results.append([name, bool(result.is_error), result.structured_content, words(result)])
    print(json.dumps([listed, results]))


asyncio.run(main(*sys.argv[1:]))
