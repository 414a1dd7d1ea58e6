"""The server of the matrix by the second major version of the official Python library; it serves only 2026-07-28.

It prints its port. The servers of the matrix have the same tools, resources and prompts.
"""

import asyncio
import socket

import mcp_types as types
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated, ToolsListChanged
from mcp.shared.exceptions import MCPError

NAMES = ["ada", "alan", "grace"]
FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}

bus = InMemorySubscriptionBus()
calls: dict[str, str] = {}


def said(value: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=value)])


async def list_tools(ctx, params) -> types.ListToolsResult:
    numbers = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}
    total = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
    key = {"type": "object", "properties": {"key": {"type": "string"}}}
    tools = [types.Tool(name="add", title="Add", description="Adds two numbers.", input_schema=numbers, output_schema=total)]
    for name in ["ask_both", "ask_form", "ask_roots", "ask_sample", "ask_url", "fail", "log", "progress", "seen", "touch", "wait"]:
        tools.append(types.Tool(name=name, description=name, input_schema=key))
    return types.ListToolsResult(tools=tools)


FORM_REQUEST = types.ElicitRequest(params=types.ElicitRequestFormParams(message="Who?", requested_schema=FORM))
URL_REQUEST = types.ElicitRequest(params=types.ElicitRequestURLParams(message="Open it.", url="https://example.test/"))
SAMPLE_REQUEST = types.CreateMessageRequest(
    params=types.CreateMessageRequestParams(
        messages=[types.SamplingMessage(role="user", content=types.TextContent(type="text", text="Say hi."))], max_tokens=9
    )
)
ROOTS_REQUEST = types.ListRootsRequest()


def asks(state: str | None = None, **requests) -> types.InputRequiredResult:
    return types.InputRequiredResult(input_requests=requests, request_state=state)


def named(given) -> str:
    return f"{given.action} {(given.content or {}).get('name')}"


def ask(name: str, params) -> types.CallToolResult | types.InputRequiredResult:
    given = params.input_responses or {}
    if name == "ask_form":
        return said(named(given["form"])) if given else asks(form=FORM_REQUEST)
    if name == "ask_url":
        return said(given["url"].action) if given else asks(url=URL_REQUEST)
    if name == "ask_sample":
        return said(given["sample"].content.text) if given else asks(sample=SAMPLE_REQUEST)
    if name == "ask_roots":
        return said(" ".join(str(root.uri) for root in given["roots"].roots)) if given else asks(roots=ROOTS_REQUEST)
    if not given:
        return asks(form=FORM_REQUEST)
    if "form" in given:
        return asks(named(given["form"]), sample=SAMPLE_REQUEST)
    return said(f"{params.request_state}, {given['sample'].content.text}")


async def wait(key: str) -> types.CallToolResult:
    calls[key] = "begun"
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        calls[key] = "cancelled"
        raise
    return said("late")


async def call_tool(ctx, params) -> types.CallToolResult | types.InputRequiredResult:
    name, arguments = params.name, params.arguments or {}
    if name == "add":
        total = arguments["a"] + arguments["b"]
        return said(str(total)).model_copy(update={"structured_content": {"sum": total}})
    if name == "fail":
        return said("out of paper").model_copy(update={"is_error": True})
    if name == "progress":
        for done in [1, 2]:
            await ctx.session.report_progress(done, 2, f"step {done}")
        return said("done")
    if name == "log":
        for level in ["info", "error"]:
            await ctx.session.send_log_message(level, f"an {level}", related_request_id=ctx.request_id)
        return said("logged")
    if name == "wait":
        return await wait(arguments["key"])
    if name == "seen":
        return said(calls.get(arguments["key"], "nothing"))
    if name == "touch":
        await bus.publish(ResourceUpdated(uri=f"test://watched/{arguments['key']}"))
        await bus.publish(ToolsListChanged())
        return said("touched")
    if name.startswith("ask_"):
        return ask(name, params)
    raise MCPError(-32602, f"Unknown tool: {name}")


async def list_resources(ctx, params) -> types.ListResourcesResult:
    return types.ListResourcesResult(resources=[types.Resource(uri="test://plain", name="plain", mime_type="text/plain")])


async def list_templates(ctx, params) -> types.ListResourceTemplatesResult:
    return types.ListResourceTemplatesResult(resource_templates=[types.ResourceTemplate(uri_template="test://item/{id}", name="item")])


async def read_resource(ctx, params) -> types.ReadResourceResult:
    uri = str(params.uri)
    if uri == "test://plain":
        content = "plain text"
    elif uri.startswith("test://item/"):
        content = f"item {uri.rsplit('/', 1)[1]}"
    else:
        raise MCPError(-32602, "Resource not found", {"uri": uri})
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type="text/plain", text=content)])


async def list_prompts(ctx, params) -> types.ListPromptsResult:
    return types.ListPromptsResult(prompts=[types.Prompt(name="greet", arguments=[types.PromptArgument(name="name", required=True)])])


async def get_prompt(ctx, params) -> types.GetPromptResult:
    content = types.TextContent(type="text", text=f"Hello {(params.arguments or {}).get('name')}")
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content)])


async def complete(ctx, params) -> types.CompleteResult:
    values = [name for name in NAMES if name.startswith(params.argument.value)]
    return types.CompleteResult(completion=types.Completion(values=values))


server = Server(
    "eras",
    version="1",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_list_resources=list_resources,
    on_list_resource_templates=list_templates,
    on_read_resource=read_resource,
    on_list_prompts=list_prompts,
    on_get_prompt=get_prompt,
    on_completion=complete,
    on_subscriptions_listen=ListenHandler(bus),
)
served = server.streamable_http_app()


async def app(scope, receive, send) -> None:
    """Refuses what has no header of 2026-07-28, so that the server is of one era."""
    if scope["type"] == "http" and (b"mcp-protocol-version", b"2026-07-28") not in scope["headers"]:
        await send({"type": "http.response.start", "status": 400, "headers": [(b"content-type", b"text/plain")]})
        await send({"type": "http.response.body", "body": b"This server serves 2026-07-28 only."})
        return
    await served(scope, receive, send)


listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])
