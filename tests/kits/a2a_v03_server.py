"""An agent of a2a-sdk 0.3 with one binding of A2A 0.3: `JSONRPC` or `HTTP+JSON`. Prints its address."""

import asyncio
import logging
import socket
import sys
import warnings

warnings.simplefilter("ignore")

import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import A2ARESTFastAPIApplication, A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryPushNotificationConfigStore, InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentSkill,
    APIKeySecurityScheme,
    In,
    InvalidAgentResponseError,
    Part,
    SecurityScheme,
    TextPart,
)
from a2a.utils import new_agent_text_message, new_task
from a2a.utils.errors import ServerError


def text_part(text):
    return Part(root=TextPart(text=text))


class Agent(AgentExecutor):
    """Does what the first word of the message says."""

    async def execute(self, context, queue):
        text = context.get_user_input()
        if text.startswith("say "):
            await queue.enqueue_event(new_agent_text_message(text[4:], context_id=context.context_id))
            return
        if context.current_task is None:
            await queue.enqueue_event(new_task(context.message))
        updater = TaskUpdater(queue, context.task_id, context.context_id)
        await updater.start_work()
        if text == "fail":
            raise ServerError(InvalidAgentResponseError(message="the agent failed", data={"step": "2"}))
        try:
            while text == "wait":
                await asyncio.sleep(0.05)
                await updater.start_work()
        except asyncio.CancelledError:
            # `cancel` reaches the caller that cancels only.
            await updater.cancel()
            return
        if text == "ask":
            await updater.requires_input(updater.new_agent_message([text_part("how many?")]))
            return
        parts = list(context.message.parts) if text == "echo" else [text_part(f"part {n} \u00e9\n") for n in range(3)]
        for number, part in enumerate(parts):
            last = number == len(parts) - 1
            await updater.add_artifact([part], artifact_id="a", name="text", append=number > 0, last_chunk=last)
        await updater.complete(updater.new_agent_message([text_part(f"done: {text}")]))

    async def cancel(self, context, queue):
        await TaskUpdater(queue, context.task_id, context.context_id).cancel()


# The failures that the client asks for are no news.
logging.disable(logging.CRITICAL)
binding = sys.argv[1]
listener = socket.create_server(("127.0.0.1", 0))
address = f"http://127.0.0.1:{listener.getsockname()[1]}"
card = AgentCard(
    name="Agent",
    description="An agent of A2A 0.3",
    version="1",
    url=address,
    preferred_transport=binding,
    protocol_version="0.3.0",
    capabilities=AgentCapabilities(streaming=True, push_notifications=True),
    default_input_modes=["text/plain"],
    default_output_modes=["text/plain"],
    skills=[AgentSkill(id="say", name="say", description="Says it", tags=["text"])],
    security_schemes={"key": SecurityScheme(root=APIKeySecurityScheme(in_=In.header, name="x-key"))},
    security=[{"key": []}],
)
handler = DefaultRequestHandler(Agent(), InMemoryTaskStore(), push_config_store=InMemoryPushNotificationConfigStore())
application = {"JSONRPC": A2AStarletteApplication, "HTTP+JSON": A2ARESTFastAPIApplication}[binding]
app = application(agent_card=card, http_handler=handler).build()
print(f"serving {address}", flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="critical")).run(sockets=[listener])
