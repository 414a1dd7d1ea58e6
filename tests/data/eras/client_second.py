"""A client of the matrix by the second major version of the official Python library. Usage: client_second.py URL MODE"""

import asyncio
import contextlib
import sys
import warnings

import mcp_types as types
from features import report
from mcp import Client as Library
from mcp import MCPError

LEVEL = "io.modelcontextprotocol/logLevel"
warnings.simplefilter("ignore")


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
        return [tool.name for tool in (await self.library.list_tools()).tools]

    async def call(self, name, arguments, progress=None, level=None):
        meta = None
        if level and self.modern():
            meta = {LEVEL: level}
        elif level:
            await self.library.set_logging_level(level)
        result = await self.calls(name, arguments, progress, meta)
        return {"text": result.content[0].text, "structured": result.structured_content, "error": result.is_error}

    async def calls(self, name, arguments, progress, meta):
        return await self.library.call_tool(name, arguments, progress_callback=progress, meta=meta)

    async def code(self, call):
        try:
            await call
        except MCPError as error:
            return error.error.code

    async def resources(self):
        return [str(resource.uri) for resource in (await self.library.list_resources()).resources]

    async def read(self, uri):
        return (await self.library.read_resource(uri)).contents[0].text

    async def templates(self):
        return [template.uri_template for template in (await self.library.list_resource_templates()).resource_templates]

    async def prompts(self):
        return [prompt.name for prompt in (await self.library.list_prompts()).prompts]

    async def prompt(self, name, arguments):
        return (await self.library.get_prompt(name, arguments)).messages[0].content.text

    async def complete(self, name, argument, value):
        reference = types.PromptReference(name=name)
        return await self.completions(reference, {"name": argument, "value": value})

    async def completions(self, reference, argument):
        return (await self.library.complete(reference, argument)).completion.values

    async def ping(self):
        await self.library.send_ping()

    async def cancel(self, call):
        call.cancel()

    @contextlib.asynccontextmanager
    async def subscribed(self, uri):
        if not self.modern():
            await self.library.subscribe_resource(uri)
            yield
            await self.library.unsubscribe_resource(uri)
            return
        async with self.library.listen(tools_list_changed=True, resource_subscriptions=[uri]):
            yield


async def main(url: str, mode: str) -> None:
    client = Client()
    client.library = Library(
        url,
        mode=mode,
        elicitation_callback=client.elicits,
        sampling_callback=client.samples,
        list_roots_callback=client.roots,
        logging_callback=client.logged,
        message_handler=client.hears,
    )
    async with client.library:
        await report(client)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
