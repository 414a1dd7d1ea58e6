// The server that the official conformance suite expects of 2026-07-28, by the second official library, on a port that is
// printed. It serves no older revision. The argument is a file beside the library's `node_modules`.
import { createHmac, randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { forms, inputs, lists, pause, prompts, read, text, tools as plain } from './conformance_content.mjs';

const require = createRequire(process.argv[2]);
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { createMcpHandler, inputRequired, ProtocolError, Server } = await load('@modelcontextprotocol/server');
const { toNodeHandler } = await load('@modelcontextprotocol/node');

const form = (name, ...given) => inputRequired.elicit(forms[name](...given));
const sample = (question, maxTokens) =>
  inputRequired.createMessage({ messages: [{ role: 'user', content: text(question) }], maxTokens });
const asks = (inputRequests, requestState) => inputRequired({ inputRequests, ...(requestState && { requestState }) });

/// The state of a call, with a signature that no client can make.
const secret = randomBytes(32);
const sign = (state) => `${state}.${createHmac('sha256', secret).update(state).digest('hex')}`;
function verified(request, state) {
  if (request.requestState() !== sign(state)) throw new ProtocolError(-32602, 'The state was not made by this server');
}

const userName = form('user_name');
const accepted = (given, key) => (given?.[key]?.action === 'accept' ? given[key].content : undefined);

/// Asks once with a state, and ends with a text.
const once = (requests, end) => (_, request) => {
  const given = request.inputResponses;
  if (!Object.keys(requests).every((key) => given?.[key])) return asks(requests, sign('once'));
  verified(request, 'once');
  return [text(end)];
};

/// A tool of the older suites that asks for a form, and tells the result.
const elicits = (name) => ({ message }, { inputResponses: given }) => {
  if (!given?.form) return asks({ form: form(name, message) });
  const { action, content } = given.form;
  return [text(`Elicitation completed: action=${action}, content=${JSON.stringify(content ?? {})}`)];
};

/// The tools of the older suites, for clients with sessions before this server.
const olderTools = {
  async test_tool_with_logging(_, request) {
    for (const line of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
      await request.log('info', line);
      await pause();
    }
    return [text('Tool with logging executed successfully')];
  },
  async test_reconnection() {
    await pause();
    return [text('Reconnection test completed successfully')];
  },
  test_sampling({ prompt }, { inputResponses: given }) {
    if (!given?.answer) return asks({ answer: sample(prompt, 100) });
    return [text(`LLM response: ${given.answer.content.text}`)];
  },
  test_elicitation: elicits('test_elicitation'),
  test_elicitation_sep1034_defaults: elicits('test_elicitation_sep1034_defaults'),
  test_elicitation_sep1330_enums: elicits('test_elicitation_sep1330_enums'),
};

const tools = {
  ...plain,
  ...olderTools,
  async test_tool_with_progress(_, request) {
    const progressToken = request._meta?.progressToken ?? 0;
    for (const progress of [0, 50, 100]) {
      await request.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } });
      await pause();
    }
    return [text(String(progressToken))];
  },
  async test_logging_tool(_, request) {
    await request.log('info', 'Tool execution started');
    return [text('logged')];
  },
  test_trigger_tool_change() {
    handler.notify.toolsChanged();
    return [text('changed')];
  },
  test_trigger_prompt_change() {
    handler.notify.promptsChanged();
    return [text('changed')];
  },
  test_x_mcp_header: ({ region }) => [text(`region ${region}`)],
  test_missing_capability: () => asks({ greeting: sample('Greet me.', 50) }),
  test_streaming_elicitation: () => asks({ user_name: userName }),
  test_input_required_result_elicitation(_, { inputResponses: given }) {
    const content = accepted(given, 'user_name');
    return typeof content?.name === 'string' ? [text(`Hello, ${content.name}!`)] : asks({ user_name: userName });
  },
  test_input_required_result_sampling(_, { inputResponses: given }) {
    const answer = given?.capital_question?.content?.text;
    return answer ? [text(answer)] : asks({ capital_question: sample('What is the capital of France?', 100) });
  },
  test_input_required_result_list_roots(_, { inputResponses: given }) {
    const roots = given?.client_roots?.roots;
    return roots ? [text(roots.map(({ uri }) => uri).join(' '))] : asks({ client_roots: inputRequired.listRoots() });
  },
  test_input_required_result_request_state: once({ confirm: form('confirm') }, 'state-ok'),
  test_input_required_result_tampered_state: once({ confirm: form('confirm') }, 'state-ok'),
  test_input_required_result_multiple_inputs: once(
    { user_name: userName, greeting: sample('Generate a greeting', 50), client_roots: inputRequired.listRoots() },
    'all there',
  ),
  test_input_required_result_multi_round(_, request) {
    const given = request.inputResponses;
    if (given?.step2) {
      verified(request, 'round-2');
      return [text('done')];
    }
    if (given?.step1) {
      verified(request, 'round-1');
      return asks({ step2: form('step2') }, sign('round-2'));
    }
    return asks({ step1: form('step1') }, sign('round-1'));
  },
  test_input_required_result_capabilities(_, { envelope }) {
    const declared = envelope?.['io.modelcontextprotocol/clientCapabilities'] ?? {};
    return asks({
      ...(declared.sampling && { greeting: sample('Greet me.', 50) }),
      ...(declared.elicitation && { user_name: userName }),
    });
  },
};
inputs.test_x_mcp_header = { properties: { region: { type: 'string', 'x-mcp-header': 'Region' } } };
const all = lists(Object.keys(tools), ['test_input_required_result_prompt']);

function prompt({ params }, { inputResponses: given }) {
  if (params.name !== 'test_input_required_result_prompt') return { messages: prompts[params.name](params.arguments ?? {}) };
  const context = accepted(given, 'user_context')?.context;
  if (!context) return asks({ user_context: form('user_context') });
  return { messages: [{ role: 'user', content: text(context) }] };
}

function newServer() {
  const capabilities = {
    tools: { listChanged: true },
    resources: { subscribe: true, listChanged: true },
    prompts: { listChanged: true },
    logging: {},
    completions: {},
  };
  const server = new Server({ name: 'conformance', version: '2' }, { capabilities });
  for (const [method, list] of Object.entries(all)) server.setRequestHandler(method, list);
  server.setRequestHandler('tools/call', async ({ params }, { mcpReq }) => {
    if (!tools[params.name]) throw new ProtocolError(-32602, `Unknown tool: ${params.name}`);
    try {
      const result = await tools[params.name](params.arguments ?? {}, mcpReq);
      return Array.isArray(result) ? { content: result } : result;
    } catch (error) {
      if (error instanceof ProtocolError) throw error;
      return { isError: true, content: [text(error.message)] };
    }
  });
  server.setRequestHandler('resources/read', ({ params: { uri } }) => {
    const found = read(uri);
    if (!found) throw new ProtocolError(-32602, 'Resource not found', { uri });
    return { contents: [found] };
  });
  server.setRequestHandler('prompts/get', (request, { mcpReq }) => prompt(request, mcpReq));
  return server;
}

const handler = createMcpHandler(newServer, { legacy: 'reject' });
const serve = toNodeHandler(handler);
const listener = createServer((request, response) => {
  const own = [`127.0.0.1:${listener.address().port}`, `localhost:${listener.address().port}`];
  const { host, origin } = request.headers;
  if (!own.includes(host) || (origin && !own.includes(origin.replace('http://', '')))) {
    response.writeHead(403).end();
    return;
  }
  serve(request, response);
});
listener.listen(0, '127.0.0.1', () => console.log(listener.address().port));
