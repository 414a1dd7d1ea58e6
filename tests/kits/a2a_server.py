"""An agent of a2a-sdk with one binding of A2A 1.0: `JSONRPC` or `HTTP+JSON`. Prints its address."""

import asyncio
import logging
import socket
import sys

import uvicorn
from a2a.helpers import new_task_from_user_message, new_text_artifact, new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryPushNotificationConfigStore, InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    APIKeySecurityScheme,
    SecurityRequirement,
    SecurityScheme,
    StringList,
)
from a2a.utils.errors import InvalidAgentResponseError
from starlette.applications import Starlette


class Agent(AgentExecutor):
    """Does what the first word of the message says."""

    async def execute(self, context, queue):
        text = context.get_user_input()
        if text.startswith("say "):
            await queue.enqueue_event(new_text_message(text[4:], context_id=context.context_id))
            return
        if context.current_task is None:
            await queue.enqueue_event(new_task_from_user_message(context.message))
        updater = TaskUpdater(queue, context.task_id, context.context_id)
        await updater.start_work()
        if text == "fail":
            raise InvalidAgentResponseError("the agent failed", {"step": "2"})
        if text == "crash":
            raise RuntimeError("the agent crashed")
        if text == "wait":
            await asyncio.sleep(60)
        if text == "ask":
            await updater.requires_input(updater.new_agent_message([new_text_part("how many?")]))
            return
        for number in range(3):
            artifact = new_text_artifact("text", f"part {number} \u00e9\n")
            await updater.add_artifact(
                artifact.parts, artifact_id="a", name="text", append=number > 0, last_chunk=number == 2
            )
        await updater.complete(updater.new_agent_message([new_text_part(f"done: {text}")]))

    async def cancel(self, context, queue):
        await TaskUpdater(queue, context.task_id, context.context_id).cancel()


# The failures that the client asks for are no news.
logging.disable(logging.CRITICAL)
binding = sys.argv[1]
# With a second argument, the agent also takes calls of A2A 0.3.
old = len(sys.argv) > 2
listener = socket.create_server(("127.0.0.1", 0))
address = f"http://127.0.0.1:{listener.getsockname()[1]}"
card = AgentCard(
    name="Agent",
    description="An agent with one binding",
    version="1",
    supported_interfaces=[
        AgentInterface(url=address, protocol_binding=binding, protocol_version=version)
        for version in (["1.0", "0.3"] if old else ["1.0"])
    ],
    capabilities=AgentCapabilities(streaming=True, push_notifications=True, extended_agent_card=True),
    default_input_modes=["text/plain"],
    default_output_modes=["text/plain"],
    skills=[AgentSkill(id="say", name="say", description="Says it", tags=["text"])],
    security_schemes={
        "key": SecurityScheme(api_key_security_scheme=APIKeySecurityScheme(location="header", name="x-key"))
    },
    security_requirements=[SecurityRequirement(schemes={"key": StringList()})],
)
extended = AgentCard()
extended.CopyFrom(card)
extended.description = "The card for authenticated clients"
handler = DefaultRequestHandler(
    Agent(),
    InMemoryTaskStore(),
    card,
    push_config_store=InMemoryPushNotificationConfigStore(),
    extended_agent_card=extended,
    validate_input_modes=True,
)
if binding == "JSONRPC":
    routes = create_jsonrpc_routes(handler, "/", enable_v0_3_compat=old)
else:
    routes = create_rest_routes(handler, enable_v0_3_compat=old)
app = Starlette(routes=create_agent_card_routes(card) + routes)
print(f"serving {address}", flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="critical")).run(sockets=[listener])
