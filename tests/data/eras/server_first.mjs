// The server of the matrix by the first major version of the official TypeScript library: sessions, up to 2025-11-25. With
// the argument `stdio` it serves its standard input and output.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { content, FORM, greeted, lists, load, said, SAMPLE, tools, URL_FORM } from './served.mjs';

const { Server } = await load('@modelcontextprotocol/sdk/server/index.js');
const { StdioServerTransport } = await load('@modelcontextprotocol/sdk/server/stdio.js');
const { StreamableHTTPServerTransport } = await load('@modelcontextprotocol/sdk/server/streamableHttp.js');
const schemas = await load('@modelcontextprotocol/sdk/types.js');

const elicit = async (extra, params) =>
  extra.sendRequest({ method: 'elicitation/create', params }, schemas.ElicitResultSchema);
const sample = async (extra) => {
  const request = { method: 'sampling/createMessage', params: SAMPLE };
  return (await extra.sendRequest(request, schemas.CreateMessageResultSchema)).content.text;
};

const called = {
  ...tools,
  async progress(_, _signal, extra) {
    const progressToken = extra._meta?.progressToken;
    for (const progress of progressToken === undefined ? [] : [1, 2]) {
      const params = { progressToken, progress, total: 2, message: `step ${progress}` };
      await extra.sendNotification({ method: 'notifications/progress', params });
    }
    return said('done');
  },
  async log(_, _signal, extra, server) {
    for (const level of ['info', 'error']) {
      if (server.isMessageIgnored(level, extra.sessionId)) continue;
      await extra.sendNotification({ method: 'notifications/message', params: { level, data: `an ${level}` } });
    }
    return said('logged');
  },
  async touch({ key }, _signal, _extra, server, watched) {
    const uri = `test://watched/${key}`;
    if (watched.has(uri)) await server.sendResourceUpdated({ uri });
    await server.sendToolListChanged();
    return said('touched');
  },
  ask_form: async (_, _signal, extra) => said(greeted(await elicit(extra, FORM))),
  ask_url: async (_, _signal, extra) => said((await elicit(extra, { ...URL_FORM, elicitationId: 'e-1' })).action),
  ask_sample: async (_, _signal, extra) => said(await sample(extra)),
  async ask_roots(_, _signal, extra) {
    const { roots } = await extra.sendRequest({ method: 'roots/list' }, schemas.ListRootsResultSchema);
    return said(roots.map(({ uri }) => uri).join(' '));
  },
  ask_both: async (_, _signal, extra) => said(`${greeted(await elicit(extra, FORM))}, ${await sample(extra)}`),
};

const requests = {
  'tools/list': 'ListToolsRequestSchema',
  'resources/list': 'ListResourcesRequestSchema',
  'resources/templates/list': 'ListResourceTemplatesRequestSchema',
  'prompts/list': 'ListPromptsRequestSchema',
  'prompts/get': 'GetPromptRequestSchema',
  'completion/complete': 'CompleteRequestSchema',
};

function newServer() {
  const watched = new Set();
  const server = new Server(
    { name: 'eras', version: '1' },
    { capabilities: { tools: { listChanged: true }, resources: { subscribe: true }, prompts: {}, logging: {}, completions: {} } },
  );
  for (const [method, schema] of Object.entries(requests)) server.setRequestHandler(schemas[schema], lists[method]);
  server.setRequestHandler(schemas.CallToolRequestSchema, ({ params }, extra) => {
    if (!called[params.name]) throw new schemas.McpError(-32602, `Unknown tool: ${params.name}`);
    return called[params.name](params.arguments ?? {}, extra.signal, extra, server, watched);
  });
  server.setRequestHandler(schemas.ReadResourceRequestSchema, ({ params: { uri } }) => {
    const found = content(uri);
    if (!found) throw new schemas.McpError(-32002, 'Resource not found', { uri });
    return { contents: [{ uri, mimeType: 'text/plain', text: found }] };
  });
  server.setRequestHandler(schemas.SubscribeRequestSchema, ({ params }) => { watched.add(params.uri); return {}; });
  server.setRequestHandler(schemas.UnsubscribeRequestSchema, ({ params }) => { watched.delete(params.uri); return {}; });
  return server;
}

const sessions = {};
const listener = createServer(async (request, response) => {
  let transport = sessions[request.headers['mcp-session-id']];
  if (!transport) {
    transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => { sessions[id] = transport; },
      onsessionclosed: (id) => { delete sessions[id]; },
    });
    await newServer().connect(transport);
  }
  await transport.handleRequest(request, response);
});
if (process.argv[3] === 'stdio') {
  await newServer().connect(new StdioServerTransport());
} else {
  listener.listen(0, '127.0.0.1', () => console.log(listener.address().port));
}
