"""An agent of a2a-sdk with both bindings of A2A 1.0, on the port that it prints."""

import asyncio
import socket

import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes.jsonrpc_routes import create_jsonrpc_routes
from a2a.server.routes.rest_routes import create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Part,
    Task,
    TaskState,
    TaskStatus,
)
from a2a.utils.errors import UnsupportedOperationError
from starlette.applications import Starlette


class Executor(AgentExecutor):
    """Writes three chunks; the text of the message says how."""

    async def execute(self, context, queue):
        text = context.get_user_input()
        submitted = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
        task = Task(id=context.task_id, context_id=context.context_id, status=submitted)
        await queue.enqueue_event(task)
        updater = TaskUpdater(queue, context.task_id, context.context_id)
        await updater.update_status(TaskState.TASK_STATE_WORKING)
        for chunk in range(3):
            if text == "fail" and chunk == 2:
                raise UnsupportedOperationError(message="cannot go on")
            await asyncio.sleep(0.5 if text == "slow" else 0)
            parts = [Part(text=f"chunk {chunk}")]
            await updater.add_artifact(
                parts, artifact_id="x", append=chunk > 0, last_chunk=chunk == 2
            )
        await updater.update_status(TaskState.TASK_STATE_COMPLETED)

    async def cancel(self, context, queue):
        updater = TaskUpdater(queue, context.task_id, context.context_id)
        await updater.update_status(TaskState.TASK_STATE_CANCELED)


def main():
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    card = AgentCard(
        name="agent",
        description="writes chunks",
        version="1",
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        supported_interfaces=[
            AgentInterface(
                url=f"http://127.0.0.1:{port}/rpc",
                protocol_binding="JSONRPC",
                protocol_version="1.0",
            )
        ],
        skills=[AgentSkill(id="s", name="s", description="s", tags=["s"])],
    )
    handler = DefaultRequestHandler(
        agent_executor=Executor(), task_store=InMemoryTaskStore(), agent_card=card
    )
    routes = create_jsonrpc_routes(handler, "/rpc") + create_rest_routes(handler)
    print(port, flush=True)
    server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes), log_level="critical"))
    asyncio.run(server.serve(sockets=[listener]))


main()
