"""The server of the matrix by the first major version of the official Python library: sessions, up to 2025-11-25.

It prints its port. The servers of the matrix have the same tools, resources and prompts. With the argument `stdio` it serves
its standard input and output, with `sse` HTTP with SSE on `/sse`.
"""

import asyncio
import contextlib
import socket
import sys

import uvicorn
from mcp import McpError, types
from mcp.server.lowlevel import Server
from mcp.server.sse import SseServerTransport
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from pydantic import AnyUrl
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Mount, Route

LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
NAMES = ["ada", "alan", "grace"]
FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}

server = Server("eras", version="1")
subscribers: dict[str, set] = {}
levels: dict[int, str] = {}
calls: dict[str, str] = {}


def text(value: str) -> list[types.TextContent]:
    return [types.TextContent(type="text", text=value)]


@server.list_tools()
async def list_tools() -> list[types.Tool]:
    numbers = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}
    total = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
    key = {"type": "object", "properties": {"key": {"type": "string"}}}
    tools = [types.Tool(name="add", title="Add", description="Adds two numbers.", inputSchema=numbers, outputSchema=total)]
    for name in ["ask_both", "ask_form", "ask_roots", "ask_sample", "ask_url", "fail", "log", "progress", "seen", "touch", "wait"]:
        tools.append(types.Tool(name=name, description=name, inputSchema=key))
    return tools


async def elicit(context) -> str:
    given = await context.session.elicit_form("Who?", FORM, related_request_id=context.request_id)
    return f"{given.action} {(given.content or {}).get('name')}"


async def sample(context) -> str:
    message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="Say hi."))
    given = await context.session.create_message([message], max_tokens=9, related_request_id=context.request_id)
    return given.content.text


async def wait(key: str) -> str:
    calls[key] = "begun"
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        calls[key] = "cancelled"
        raise
    return "late"


async def call_tool(call: types.CallToolRequest) -> types.ServerResult:
    return types.ServerResult(await result_of(call.params.name, call.params.arguments or {}))


# The decorator of the library makes every error a result.
server.request_handlers[types.CallToolRequest] = call_tool


async def result_of(name: str, arguments: dict) -> types.CallToolResult:
    context = server.request_context
    session, request = context.session, context.request_id
    if name == "add":
        total = arguments["a"] + arguments["b"]
        return types.CallToolResult(content=text(str(total)), structuredContent={"sum": total})
    if name == "fail":
        return types.CallToolResult(content=text("out of paper"), isError=True)
    if name == "progress":
        for done in [1, 2]:
            if context.meta and context.meta.progressToken is not None:
                token = context.meta.progressToken
                await session.send_progress_notification(token, done, 2, f"step {done}", related_request_id=request)
        return types.CallToolResult(content=text("done"))
    if name == "log":
        least = LEVELS.index(levels.get(id(session), "debug"))
        for level in ["info", "error"]:
            if LEVELS.index(level) >= least:
                await session.send_log_message(level, f"an {level}", related_request_id=request)
        return types.CallToolResult(content=text("logged"))
    if name == "wait":
        return types.CallToolResult(content=text(await wait(arguments["key"])))
    if name == "seen":
        return types.CallToolResult(content=text(calls.get(arguments["key"], "nothing")))
    if name == "touch":
        uri = f"test://watched/{arguments['key']}"
        for subscriber in subscribers.get(uri, set()):
            await subscriber.send_resource_updated(AnyUrl(uri))
        await session.send_tool_list_changed()
        return types.CallToolResult(content=text("touched"))
    if name == "ask_form":
        return types.CallToolResult(content=text(await elicit(context)))
    if name == "ask_url":
        given = await session.elicit_url("Open it.", "https://example.test/", "e-1", related_request_id=request)
        return types.CallToolResult(content=text(given.action))
    if name == "ask_sample":
        return types.CallToolResult(content=text(await sample(context)))
    if name == "ask_roots":
        roots = await session.list_roots()
        return types.CallToolResult(content=text(" ".join(str(root.uri) for root in roots.roots)))
    if name == "ask_both":
        return types.CallToolResult(content=text(f"{await elicit(context)}, {await sample(context)}"))
    raise McpError(types.ErrorData(code=-32602, message=f"Unknown tool: {name}"))


@server.list_resources()
async def list_resources() -> list[types.Resource]:
    return [types.Resource(uri=AnyUrl("test://plain"), name="plain", mimeType="text/plain")]


@server.list_resource_templates()
async def list_templates() -> list[types.ResourceTemplate]:
    return [types.ResourceTemplate(uriTemplate="test://item/{id}", name="item")]


async def read_resource(request: types.ReadResourceRequest) -> types.ServerResult:
    uri = request.params.uri
    if str(uri) == "test://plain":
        content = "plain text"
    elif str(uri).startswith("test://item/"):
        content = f"item {str(uri).rsplit('/', 1)[1]}"
    else:
        raise McpError(types.ErrorData(code=-32002, message="Resource not found", data={"uri": str(uri)}))
    contents = [types.TextResourceContents(uri=uri, mimeType="text/plain", text=content)]
    return types.ServerResult(types.ReadResourceResult(contents=contents))


server.request_handlers[types.ReadResourceRequest] = read_resource


@server.subscribe_resource()
async def subscribe(uri: AnyUrl) -> None:
    subscribers.setdefault(str(uri), set()).add(server.request_context.session)


@server.unsubscribe_resource()
async def unsubscribe(uri: AnyUrl) -> None:
    subscribers.get(str(uri), set()).discard(server.request_context.session)


@server.list_prompts()
async def list_prompts() -> list[types.Prompt]:
    return [types.Prompt(name="greet", arguments=[types.PromptArgument(name="name", required=True)])]


@server.get_prompt()
async def get_prompt(name: str, arguments: dict | None) -> types.GetPromptResult:
    content = types.TextContent(type="text", text=f"Hello {(arguments or {}).get('name')}")
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content)])


@server.completion()
async def complete(ref, argument, context) -> types.Completion:
    return types.Completion(values=[name for name in NAMES if name.startswith(argument.value)])


@server.set_logging_level()
async def set_level(level: str) -> None:
    levels[id(server.request_context.session)] = level


create = server.create_initialization_options


def options(notification_options=None, experimental_capabilities=None):
    given = create(notification_options, experimental_capabilities)
    given.capabilities.resources.subscribe = True
    given.capabilities.tools.listChanged = True
    return given


server.create_initialization_options = options
manager = StreamableHTTPSessionManager(server)


@contextlib.asynccontextmanager
async def lifespan(_):
    async with manager.run():
        yield


async def serve_stdio() -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


messages = SseServerTransport("/messages/")


async def serve_sse(request) -> Response:
    async with messages.connect_sse(request.scope, request.receive, request._send) as (read, write):
        await server.run(read, write, server.create_initialization_options())
    return Response()


if sys.argv[1:] == ["stdio"]:
    asyncio.run(serve_stdio())
    sys.exit()
if sys.argv[1:] == ["sse"]:
    app = Starlette(routes=[Route("/sse", serve_sse), Mount("/messages/", app=messages.handle_post_message)])
else:
    app = Starlette(routes=[Mount("/", app=manager.handle_request)], lifespan=lifespan)
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])
