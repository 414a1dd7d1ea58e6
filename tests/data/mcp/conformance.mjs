// The server that the official conformance suite expects: its tools, resources and prompts, on a port that is printed.
//
// Sessions of 2025-11-25 and before, by the first official library. The argument is a file beside its `node_modules`.
import { createServer } from 'node:http';
import { randomUUID } from 'node:crypto';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(process.argv[2]);
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { Server } = await load('@modelcontextprotocol/sdk/server/index.js');
const { StreamableHTTPServerTransport } = await load('@modelcontextprotocol/sdk/server/streamableHttp.js');
const schemas = await load('@modelcontextprotocol/sdk/types.js');

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';
const WAV = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=';
const text = (text) => ({ type: 'text', text });
const image = { type: 'image', data: PNG, mimeType: 'image/png' };
const resource = (uri, mimeType, text) => ({ type: 'resource', resource: { uri, mimeType, text } });
const pause = () => new Promise((resolve) => setTimeout(resolve, 50));

const asks = (message, properties, required = []) => ({
  mode: 'form',
  message,
  requestedSchema: { type: 'object', properties, required },
});
const options = [
  { const: 'value1', title: 'First Option' },
  { const: 'value2', title: 'Second Option' },
  { const: 'value3', title: 'Third Option' },
];
const words = ['option1', 'option2', 'option3'];

async function elicit(extra, params) {
  const { action, content } = await extra.sendRequest({ method: 'elicitation/create', params }, schemas.ElicitResultSchema);
  return [text(`Elicitation completed: action=${action}, content=${JSON.stringify(content ?? {})}`)];
}

const log = (extra, data) => extra.sendNotification({ method: 'notifications/message', params: { level: 'info', data } });

const tools = {
  test_simple_text: () => [text('This is a simple text response for testing.')],
  test_image_content: () => [image],
  test_audio_content: () => [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }],
  test_embedded_resource: () => [resource('test://embedded-resource', 'text/plain', 'This is an embedded resource content.')],
  test_multiple_content_types: () => [
    text('Multiple content types test:'),
    image,
    resource('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'),
  ],
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
  test_error_handling() {
    throw new Error('This tool intentionally returns an error for testing');
  },
  async test_reconnection(_, extra) {
    extra.closeSSEStream?.();
    await pause();
    return [text('Reconnection test completed successfully')];
  },
  async test_sampling({ prompt }, extra) {
    const params = { messages: [{ role: 'user', content: text(prompt) }], maxTokens: 100 };
    const { content } = await extra.sendRequest({ method: 'sampling/createMessage', params }, schemas.CreateMessageResultSchema);
    return [text(`LLM response: ${content.text}`)];
  },
  test_elicitation: ({ message }, extra) =>
    elicit(extra, asks(message, { username: { type: 'string' }, email: { type: 'string' } }, ['username', 'email'])),
  test_elicitation_sep1034_defaults: (_, extra) =>
    elicit(extra, asks('Please review the defaults', {
      name: { type: 'string', default: 'John Doe' },
      age: { type: 'integer', default: 30 },
      score: { type: 'number', default: 95.5 },
      status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
      verified: { type: 'boolean', default: true },
    })),
  test_elicitation_sep1330_enums: (_, extra) =>
    elicit(extra, asks('Please choose', {
      untitledSingle: { type: 'string', enum: words },
      titledSingle: { type: 'string', oneOf: options },
      legacyEnum: { type: 'string', enum: ['opt1', 'opt2', 'opt3'], enumNames: ['One', 'Two', 'Three'] },
      untitledMulti: { type: 'array', items: { type: 'string', enum: words } },
      titledMulti: { type: 'array', items: { anyOf: options } },
    })),
  json_schema_2020_12_tool: (input) => [text(`JSON Schema 2020-12 tool called with: ${JSON.stringify(input)}`)],
};

const inputs = {
  test_sampling: { properties: { prompt: { type: 'string' } }, required: ['prompt'] },
  test_elicitation: { properties: { message: { type: 'string' } }, required: ['message'] },
  json_schema_2020_12_tool: {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $defs: {
      address: { $anchor: 'addressDef', type: 'object', properties: { street: { type: 'string' }, city: { type: 'string' } } },
    },
    properties: {
      name: { type: 'string' },
      address: { $ref: '#/$defs/address' },
      contactMethod: { type: 'string', enum: ['phone', 'email'] },
      phone: { type: 'string' },
      email: { type: 'string' },
    },
    allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
    if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
    then: { required: ['phone'] },
    else: { required: ['email'] },
    additionalProperties: false,
  },
};

const contents = {
  'test://static-text': { mimeType: 'text/plain', text: 'This is the content of the static text resource.' },
  'test://static-binary': { mimeType: 'image/png', blob: PNG },
  'test://watched-resource': { mimeType: 'text/plain', text: 'Watched resource content' },
};

const user = (content) => ({ role: 'user', content });
const prompts = {
  test_simple_prompt: () => [user(text('This is a simple prompt for testing.'))],
  test_prompt_with_arguments: ({ arg1, arg2 }) => [user(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`))],
  test_prompt_with_embedded_resource: ({ resourceUri }) => [
    user(resource(resourceUri, 'text/plain', 'Embedded resource content for testing.')),
    user(text('Please process the embedded resource above.')),
  ],
  test_prompt_with_image: () => [user(image), user(text('Please analyze the image above.'))],
};
const named = (...names) => names.map((name) => ({ name, description: name, required: true }));
const promptArguments = {
  test_prompt_with_arguments: named('arg1', 'arg2'),
  test_prompt_with_embedded_resource: named('resourceUri'),
};

function read(uri) {
  const template = /^test:\/\/template\/([^/]+)\/data$/.exec(uri);
  if (template) {
    const data = JSON.stringify({ id: template[1], templateTest: true, data: `Data for ID: ${template[1]}` });
    return { uri, mimeType: 'application/json', text: data };
  }
  if (!contents[uri]) throw new schemas.McpError(-32002, 'Resource not found', { uri });
  return { uri, ...contents[uri] };
}

function newServer() {
  const capabilities = { tools: {}, resources: { subscribe: true }, prompts: {}, logging: {}, completions: {} };
  const server = new Server({ name: 'conformance', version: '1' }, { capabilities });
  const on = (schema, handler) => server.setRequestHandler(schemas[schema], handler);
  on('ListToolsRequestSchema', () => ({
    tools: Object.keys(tools).map((name) => ({ name, description: name, inputSchema: { type: 'object', ...inputs[name] } })),
  }));
  on('CallToolRequestSchema', async ({ params }, extra) => {
    if (!tools[params.name]) throw new schemas.McpError(-32602, `Unknown tool: ${params.name}`);
    try {
      return { content: await tools[params.name](params.arguments ?? {}, extra) };
    } catch (error) {
      return { isError: true, content: [text(error.message)] };
    }
  });
  on('ListResourcesRequestSchema', () => ({
    resources: Object.entries(contents).map(([uri, { mimeType }]) => ({ uri, name: uri, description: uri, mimeType })),
  }));
  on('ListResourceTemplatesRequestSchema', () => ({
    resourceTemplates: [{ uriTemplate: 'test://template/{id}/data', name: 'template', mimeType: 'application/json' }],
  }));
  on('ReadResourceRequestSchema', ({ params }) => ({ contents: [read(params.uri)] }));
  on('SubscribeRequestSchema', () => ({}));
  on('UnsubscribeRequestSchema', () => ({}));
  on('ListPromptsRequestSchema', () => ({
    prompts: Object.keys(prompts).map((name) => ({ name, description: name, arguments: promptArguments[name] })),
  }));
  on('GetPromptRequestSchema', ({ params }) => ({ messages: prompts[params.name](params.arguments ?? {}) }));
  on('CompleteRequestSchema', () => ({ completion: { values: ['paris', 'park', 'party'], total: 3, hasMore: false } }));
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
