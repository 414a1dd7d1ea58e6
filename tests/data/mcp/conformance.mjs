// The server that the official conformance suite expects: its tools, resources and prompts, on a port that is printed.
//
// Sessions of 2025-11-25 and before, by the first official library. The argument is a file beside its `node_modules`.
import { createServer } from 'node:http';
import { randomUUID } from 'node:crypto';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { forms, lists, pause, prompts, read, text, tools as plain } from './conformance_content.mjs';

const require = createRequire(process.argv[2]);
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { Server } = await load('@modelcontextprotocol/sdk/server/index.js');
const { StreamableHTTPServerTransport } = await load('@modelcontextprotocol/sdk/server/streamableHttp.js');
const schemas = await load('@modelcontextprotocol/sdk/types.js');

const send = (extra, method, params, schema) => extra.sendRequest({ method, params }, schemas[schema]);
const ask = (extra, params) => send(extra, 'elicitation/create', params, 'ElicitResultSchema');
const sample = async (extra, question, maxTokens) => {
  const params = { messages: [{ role: 'user', content: text(question) }], maxTokens };
  return (await send(extra, 'sampling/createMessage', params, 'CreateMessageResultSchema')).content.text;
};
const roots = async (extra) => (await send(extra, 'roots/list', undefined, 'ListRootsResultSchema')).roots;

async function elicit(extra, params) {
  const { action, content } = await ask(extra, params);
  return [text(`Elicitation completed: action=${action}, content=${JSON.stringify(content ?? {})}`)];
}

const log = (extra, data) => extra.sendNotification({ method: 'notifications/message', params: { level: 'info', data } });

/// The tools of 2026-07-28, for clients of that revision before this server: it asks during the call.
const modernTools = {
  async test_input_required_result_elicitation(_, extra) {
    const { content } = await ask(extra, forms.user_name());
    return [text(`Hello, ${content?.name}!`)];
  },
  test_input_required_result_sampling: async (_, extra) => [text(await sample(extra, 'What is the capital of France?', 100))],
  test_input_required_result_list_roots: async (_, extra) => [text((await roots(extra)).map(({ uri }) => uri).join(' '))],
  async test_input_required_result_request_state(_, extra) {
    await ask(extra, forms.confirm());
    return [text('state-ok')];
  },
  async test_input_required_result_tampered_state(_, extra) {
    await ask(extra, forms.confirm());
    return [text('state-ok')];
  },
  async test_input_required_result_multiple_inputs(_, extra) {
    await Promise.all([ask(extra, forms.user_name()), sample(extra, 'Generate a greeting', 50), roots(extra)]);
    return [text('all there')];
  },
  async test_input_required_result_multi_round(_, extra) {
    await ask(extra, forms.step1());
    await ask(extra, forms.step2());
    return [text('done')];
  },
  test_input_required_result_capabilities: async (_, extra) => [text(await sample(extra, 'Greet me.', 50))],
  test_missing_capability: async (_, extra) => [text(await sample(extra, 'Greet me.', 50))],
  test_streaming_elicitation: async (_, extra) => elicit(extra, forms.user_name()),
  async test_logging_tool(_, extra) {
    await log(extra, 'Tool execution started');
    return [text('logged')];
  },
  async test_trigger_tool_change(_, _extra, server) {
    await server.sendToolListChanged();
    return [text('changed')];
  },
  async test_trigger_prompt_change(_, _extra, server) {
    await server.sendPromptListChanged();
    return [text('changed')];
  },
};

const tools = {
  ...plain,
  async test_tool_with_logging(_, extra) {
    for (const line of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
      await log(extra, line);
      await pause();
    }
    return [text('Tool with logging executed successfully')];
  },
  async test_tool_with_progress(_, extra) {
    const progressToken = extra._meta?.progressToken ?? 0;
    for (const progress of [0, 50, 100]) {
      const params = { progressToken, progress, total: 100 };
      await extra.sendNotification({ method: 'notifications/progress', params });
      await pause();
    }
    return [text(String(progressToken))];
  },
  async test_reconnection(_, extra) {
    extra.closeSSEStream?.();
    await pause();
    return [text('Reconnection test completed successfully')];
  },
  async test_sampling({ prompt }, extra) {
    return [text(`LLM response: ${await sample(extra, prompt, 100)}`)];
  },
  test_elicitation: ({ message }, extra) => elicit(extra, forms.test_elicitation(message)),
  test_elicitation_sep1034_defaults: (_, extra) => elicit(extra, forms.test_elicitation_sep1034_defaults()),
  test_elicitation_sep1330_enums: (_, extra) => elicit(extra, forms.test_elicitation_sep1330_enums()),
  ...modernTools,
};

const requests = {
  'tools/list': 'ListToolsRequestSchema',
  'resources/list': 'ListResourcesRequestSchema',
  'resources/templates/list': 'ListResourceTemplatesRequestSchema',
  'prompts/list': 'ListPromptsRequestSchema',
  'completion/complete': 'CompleteRequestSchema',
};

function newServer() {
  const capabilities = { tools: { listChanged: true }, resources: { subscribe: true }, prompts: { listChanged: true }, logging: {}, completions: {} };
  const server = new Server({ name: 'conformance', version: '1' }, { capabilities });
  const on = (schema, handler) => server.setRequestHandler(schemas[schema], handler);
  const all = lists(Object.keys(tools), ['test_input_required_result_prompt']);
  for (const [method, schema] of Object.entries(requests)) on(schema, all[method]);
  on('CallToolRequestSchema', async ({ params }, extra) => {
    if (!tools[params.name]) throw new schemas.McpError(-32602, `Unknown tool: ${params.name}`);
    try {
      return { content: await tools[params.name](params.arguments ?? {}, extra, server) };
    } catch (error) {
      // The client's refusal to be asked is no result of the tool.
      if (error instanceof schemas.McpError) throw error;
      return { isError: true, content: [text(error.message)] };
    }
  });
  on('ReadResourceRequestSchema', ({ params: { uri } }) => {
    const found = read(uri);
    if (!found) throw new schemas.McpError(-32002, 'Resource not found', { uri });
    return { contents: [found] };
  });
  on('SubscribeRequestSchema', () => ({}));
  on('UnsubscribeRequestSchema', () => ({}));
  on('GetPromptRequestSchema', async ({ params }, extra) => {
    if (params.name !== 'test_input_required_result_prompt') return { messages: prompts[params.name](params.arguments ?? {}) };
    const { content } = await ask(extra, forms.user_context());
    return { messages: [{ role: 'user', content: text(content?.context ?? '') }] };
  });
  on('SetLevelRequestSchema', () => ({}));
  return server;
}

/// The events of all streams, for clients that resume one.
class Events {
  events = [];
  async storeEvent(stream, message) {
    this.events.push({ id: `${stream}_${this.events.length}`, stream, message });
    return this.events.at(-1).id;
  }
  async replayEventsAfter(last, { send }) {
    const at = this.events.findIndex(({ id }) => id === last);
    const { stream } = this.events[at];
    for (const { id, stream: own, message } of this.events.slice(at + 1)) {
      if (own === stream && Object.keys(message).length > 0) await send(id, message);
    }
    return stream;
  }
}

const sessions = {};
const listener = createServer(async (request, response) => {
  const { port } = listener.address();
  const session = request.headers['mcp-session-id'];
  let transport = sessions[session];
  if (session && !transport) {
    const error = { code: -32001, message: 'Session not found' };
    response.writeHead(404).end(JSON.stringify({ jsonrpc: '2.0', id: null, error }));
    return;
  }
  if (!transport) {
    transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      eventStore: new Events(),
      retryInterval: 500,
      enableDnsRebindingProtection: true,
      allowedHosts: [`127.0.0.1:${port}`, `localhost:${port}`],
      allowedOrigins: [`http://127.0.0.1:${port}`, `http://localhost:${port}`],
      onsessioninitialized: (id) => { sessions[id] = transport; },
      onsessionclosed: (id) => { delete sessions[id]; },
    });
    await newServer().connect(transport);
  }
  await transport.handleRequest(request, response);
});
listener.listen(0, '127.0.0.1', () => console.log(listener.address().port));
