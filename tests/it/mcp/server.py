"""An MCP server of the official library, on a port of its own, which it prints.

Usage: server.py KIND PORT, where PORT 0 is any, and KIND is `stateful`, `json` or `stateless` (sessions, streams or plain JSON), or `sse` (HTTP
with SSE). The library's
version is the one that this Python has: 1.x has `FastMCP`, 2.x `MCPServer`, which speaks the revision without sessions
as well.
"""

import socket
import sys

import uvicorn

try:
    from mcp.server.fastmcp import Context, FastMCP as Server
except ImportError:
    from mcp.server.mcpserver import Context, MCPServer as Server

kind = sys.argv[1]
server = Server("peer")


@server.tool()
def add(a: int, b: int = 1) -> str:
    """Adds two numbers."""
    return f"the sum is {a + b}"


@server.tool()
async def tell(what: str, ctx: Context) -> str:
    """Tells of its progress and logs before it answers."""
    await ctx.report_progress(1, 2)
    await ctx.info(what)
    return what


@server.tool(name="größe")
def size() -> str:
    """Has a name that no header can bear as it is."""
    return "groß"


@server.tool()
def fail(why: str) -> str:
    """Fails."""
    raise RuntimeError(why)


options = {"json_response": kind == "json", "stateless_http": kind == "stateless"}
try:
    app = server.sse_app() if kind == "sse" else server.streamable_http_app(**options)
except TypeError:
    for name, value in options.items():
        setattr(server.settings, name, value)
    app = server.streamable_http_app()

listener = socket.create_server(("127.0.0.1", int(sys.argv[2])))
print(listener.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
