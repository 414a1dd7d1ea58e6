"""A client of the matrix by the first major version of the official Python library. Usage: client_first.py URL"""

import asyncio
import contextlib
import sys

from features import report
from mcp import ClientSession, McpError, types
from mcp.client.streamable_http import streamablehttp_client
from pydantic import AnyUrl


class Client:
    def __init__(self) -> None:
        self.session: ClientSession
        self.logs, self.updates, self.changes = [], [], []

    def modern(self) -> bool:
        return False

    async def hears(self, message) -> None:
        match getattr(message, "root", None):
            case types.ResourceUpdatedNotification(params=params):
                self.updates.append(str(params.uri))
            case types.ToolListChangedNotification():
                self.changes.append("tools")

    async def logged(self, params) -> None:
        self.logs.append(params.data)

    async def elicits(self, context, params) -> types.ElicitResult:
        content = None if params.mode == "url" else {"name": "Ada"}
        return types.ElicitResult(action="accept", content=content)

    async def samples(self, context, params) -> types.CreateMessageResult:
        content = types.TextContent(type="text", text="hi")
        return types.CreateMessageResult(role="assistant", content=content, model="none")

    async def roots(self, context) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri="file:///tmp/eras")])

    async def tools(self):
        return [tool.name for tool in (await self.session.list_tools()).tools]

    async def call(self, name, arguments, progress=None, level=None):
        if level:
            await self.session.set_logging_level(level)
        result = await self.session.call_tool(name, arguments, progress_callback=progress)
        return {"text": result.content[0].text, "structured": result.structuredContent, "error": result.isError}

    async def code(self, call):
        try:
            await call
        except McpError as error:
            return error.error.code

    async def resources(self):
        return [str(resource.uri) for resource in (await self.session.list_resources()).resources]

    async def read(self, uri):
        return (await self.session.read_resource(AnyUrl(uri))).contents[0].text

    async def templates(self):
        return [template.uriTemplate for template in (await self.session.list_resource_templates()).resourceTemplates]

    async def prompts(self):
        return [prompt.name for prompt in (await self.session.list_prompts()).prompts]

    async def prompt(self, name, arguments):
        return (await self.session.get_prompt(name, arguments)).messages[0].content.text

    async def complete(self, name, argument, value):
        reference = types.PromptReference(type="ref/prompt", name=name)
        return (await self.session.complete(reference, {"name": argument, "value": value})).completion.values

    async def ping(self):
        await self.session.send_ping()

    async def cancel(self, call):
        # The library gives nobody the id of a call, and tells nobody when its task is cancelled.
        own = min(self.session._response_streams)
        params = types.CancelledNotificationParams(requestId=own, reason="enough")
        cancelled = types.CancelledNotification(method="notifications/cancelled", params=params)
        await self.session.send_notification(types.ClientNotification(cancelled))
        call.cancel()

    @contextlib.asynccontextmanager
    async def subscribed(self, uri):
        await self.session.subscribe_resource(AnyUrl(uri))
        yield
        await self.session.unsubscribe_resource(AnyUrl(uri))


async def main(url: str) -> None:
    client = Client()
    async with streamablehttp_client(url) as (read, write, _):
        callbacks = {
            "elicitation_callback": client.elicits,
            "sampling_callback": client.samples,
            "list_roots_callback": client.roots,
            "logging_callback": client.logged,
            "message_handler": client.hears,
        }
        async with ClientSession(read, write, **callbacks) as client.session:
            await client.session.initialize()
            await report(client)


asyncio.run(main(*sys.argv[1:]))
