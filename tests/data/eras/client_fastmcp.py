"""A client of the matrix by fastmcp. Usage: client_fastmcp.py URL MODE"""

import asyncio
import contextlib
import logging
import sys
import warnings

import mcp_types as types
from fastmcp import Client as Library
from fastmcp.client.elicitation import ElicitResult
from features import report
from mcp import MCPError
from mcp.client.subscriptions import listen

LEVEL = "io.modelcontextprotocol/logLevel"
warnings.simplefilter("ignore")
logging.disable()


class Client:
    def __init__(self) -> None:
        self.library: Library
        self.logs, self.updates, self.changes = [], [], []

    def modern(self) -> bool:
        return self.library.protocol_version == "2026-07-28"

    async def hears(self, message) -> None:
        match message:
            case types.ResourceUpdatedNotification(params=params):
                self.updates.append(str(params.uri))
            case types.ToolListChangedNotification():
                self.changes.append("tools")

    async def logged(self, message) -> None:
        self.logs.append(message.data)

    async def elicits(self, message, kind, params, context):
        return ElicitResult(action="accept", content=None if params.mode == "url" else {"name": "Ada"})

    async def samples(self, messages, params, context) -> str:
        return "hi"

    async def tools(self):
        return [tool.name for tool in await self.library.list_tools()]

    async def call(self, name, arguments, progress=None, level=None):
        meta = None
        if level and self.modern():
            meta = {LEVEL: level}
        elif level:
            await self.library.set_logging_level(level)
        result = await self.library.call_tool_mcp(name, arguments, progress_handler=progress, meta=meta)
        return {"text": result.content[0].text, "structured": result.structured_content, "error": result.is_error}

    async def code(self, call):
        try:
            await call
        except MCPError as error:
            return error.error.code

    async def resources(self):
        return [str(resource.uri) for resource in await self.library.list_resources()]

    async def read(self, uri):
        return (await self.library.read_resource(uri))[0].text

    async def templates(self):
        return [template.uri_template for template in await self.library.list_resource_templates()]

    async def prompts(self):
        return [prompt.name for prompt in await self.library.list_prompts()]

    async def prompt(self, name, arguments):
        return (await self.library.get_prompt(name, arguments)).messages[0].content.text

    async def complete(self, name, argument, value):
        reference = types.PromptReference(name=name)
        return (await self.library.complete(reference, {"name": argument, "value": value})).values

    async def ping(self):
        await self.library.ping()

    async def cancel(self, call):
        call.cancel()

    @contextlib.asynccontextmanager
    async def subscribed(self, uri):
        # fastmcp has no call for it, but the session of the official library.
        session = self.library.session
        if self.modern():
            async with listen(session, tools_list_changed=True, resource_subscriptions=[uri]):
                yield
            return
        await session.subscribe_resource(uri)
        yield
        await session.unsubscribe_resource(uri)


async def main(url: str, mode: str) -> None:
    client = Client()
    client.library = Library(
        url,
        mode=mode,
        roots=["file:///tmp/eras"],
        elicitation_handler=client.elicits,
        sampling_handler=client.samples,
        log_handler=client.logged,
        message_handler=client.hears,
    )
    async with client.library:
        await report(client)


asyncio.run(main(*sys.argv[1:]))
