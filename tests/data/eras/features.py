"""The features that the Python clients of the matrix use; prints one line of JSON for each.

A client is an object with the methods that are called here. A method that its library does not have is missing.
"""

import asyncio
import json
import time
import uuid

LIMIT = 20.0
KEY = uuid.uuid4().hex


async def until(holds, touch=None) -> bool:
    """Asks again until something holds; does something before each time."""
    end = time.monotonic() + LIMIT - 5
    while time.monotonic() < end:
        if touch:
            await touch()
        for _ in range(5):
            if await holds():
                return True
            await asyncio.sleep(0.05)
    return False


async def tools(client):
    return await client.tools()


async def call(client):
    return (await client.call("add", {"a": 1, "b": 2}))["text"]


async def structured(client):
    return (await client.call("add", {"a": 1, "b": 2}))["structured"]


async def is_error(client):
    said = await client.call("fail", {})
    return [said["error"], said["text"]]


async def unknown_tool(client):
    return await client.code(client.call("nosuch", {}))


async def resources(client):
    return await client.resources()


async def read(client):
    return await client.read("test://plain")


async def templates(client):
    return await client.templates()


async def read_template(client):
    return await client.read("test://item/7")


async def missing_resource(client):
    """The code of the client's era."""
    code = await client.code(client.read("test://missing"))
    return code == (-32602 if client.modern() else -32002) or code


async def prompts(client):
    return await client.prompts()


async def prompt(client):
    return await client.prompt("greet", {"name": "Ada"})


async def completion(client):
    return await client.complete("greet", "name", "a")


async def progress(client):
    heard = []

    async def hears(done, total, message):
        heard.append([int(done), int(total), message])

    await client.call("progress", {}, progress=hears)

    async def all_heard():
        return len(heard) >= 2

    await until(all_heard)
    return heard


async def logged(client, level):
    client.logs.clear()
    await client.call("log", {}, level=level)

    async def heard():
        return "an error" in client.logs

    await until(heard)
    return client.logs


async def log(client):
    return list(await logged(client, "debug"))


async def log_level(client):
    return list(await logged(client, "error"))


async def ping(client):
    await client.ping()
    return True


async def cancellation(client):
    call = asyncio.create_task(client.call("wait", {"key": KEY}))

    async def seen(what):
        return (await client.call("seen", {"key": KEY}))["text"] == what

    await until(lambda: seen("begun"))
    await client.cancel(call)
    return await until(lambda: seen("cancelled"))


async def changes(client):
    uri = f"test://watched/{KEY}"
    client.updates.clear()
    client.changes.clear()
    async with client.subscribed(uri):
        async def heard():
            return uri in client.updates and "tools" in client.changes

        await until(heard, lambda: client.call("touch", {"key": KEY}))
        return [uri in client.updates, "tools" in client.changes]


async def elicitation(client):
    return (await client.call("ask_form", {}))["text"]


async def url_elicitation(client):
    return (await client.call("ask_url", {}))["text"]


async def sampling(client):
    return (await client.call("ask_sample", {}))["text"]


async def roots(client):
    return (await client.call("ask_roots", {}))["text"]


async def several_requests(client):
    return (await client.call("ask_both", {}))["text"]


FEATURES = [
    tools, call, structured, is_error, unknown_tool, resources, read, templates, read_template, missing_resource,
    prompts, prompt, completion, progress, log, log_level, ping, changes, elicitation, url_elicitation,
    # Last, because a server may leave the cancelled call without an end. The proxy then cannot tell what its requests and
    # log messages belong to, where they do not come in the response stream of a call.
    sampling, roots, several_requests, cancellation,
]


async def report(client) -> None:
    for feature in FEATURES:
        line = {"feature": feature.__name__}
        try:
            line["value"] = await asyncio.wait_for(feature(client), LIMIT)
        except Exception as error:
            line["failed"] = f"{type(error).__name__}: {error}"[:300]
        print(json.dumps(line), flush=True)
