// The server of the matrix by the second major version of the official TypeScript library; it serves only 2026-07-28.
import { createServer } from 'node:http';
import { content, FORM, greeted, lists, load, said, SAMPLE, tools, URL_FORM } from './served.mjs';

const { createMcpHandler, inputRequired, ProtocolError, Server } = await load('@modelcontextprotocol/server');
const { toNodeHandler } = await load('@modelcontextprotocol/node');

const form = inputRequired.elicit(FORM);
const sample = inputRequired.createMessage(SAMPLE);
const asks = (inputRequests, requestState) => inputRequired({ inputRequests, requestState });

const called = {
  ...tools,
  async progress(_, _signal, request) {
    const progressToken = request._meta?.progressToken;
    for (const progress of progressToken === undefined ? [] : [1, 2]) {
      const params = { progressToken, progress, total: 2, message: `step ${progress}` };
      await request.notify({ method: 'notifications/progress', params });
    }
    return said('done');
  },
  async log(_, _signal, request) {
    for (const level of ['info', 'error']) await request.log(level, `an ${level}`);
    return said('logged');
  },
  touch({ key }) {
    handler.notify.resourceUpdated(`test://watched/${key}`);
    handler.notify.toolsChanged();
    return said('touched');
  },
  ask_form: (_, _signal, { inputResponses: given }) => (given ? said(greeted(given.form)) : asks({ form })),
  ask_url: (_, _signal, { inputResponses: given }) =>
    given ? said(given.url.action) : asks({ url: inputRequired.elicitUrl({ message: URL_FORM.message, url: URL_FORM.url }) }),
  ask_sample: (_, _signal, { inputResponses: given }) => (given ? said(given.sample.content.text) : asks({ sample })),
  ask_roots: (_, _signal, { inputResponses: given }) =>
    given ? said(given.roots.roots.map(({ uri }) => uri).join(' ')) : asks({ roots: inputRequired.listRoots() }),
  ask_both(_, _signal, { inputResponses: given, requestState }) {
    if (!given) return asks({ form });
    if (given.form) return asks({ sample }, greeted(given.form));
    return said(`${requestState()}, ${given.sample.content.text}`);
  },
};

function newServer() {
  const server = new Server(
    { name: 'eras', version: '1' },
    {
      capabilities: {
        tools: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
        prompts: {},
        logging: {},
        completions: {},
      },
    },
  );
  for (const [method, list] of Object.entries(lists)) server.setRequestHandler(method, list);
  server.setRequestHandler('tools/call', ({ params }, { mcpReq }) => {
    if (!called[params.name]) throw new ProtocolError(-32602, `Unknown tool: ${params.name}`);
    return called[params.name](params.arguments ?? {}, mcpReq.signal, mcpReq);
  });
  server.setRequestHandler('resources/read', ({ params: { uri } }) => {
    const found = content(uri);
    if (!found) throw new ProtocolError(-32602, 'Resource not found', { uri });
    return { contents: [{ uri, mimeType: 'text/plain', text: found }] };
  });
  return server;
}

const handler = createMcpHandler(newServer, { legacy: 'reject' });
const listener = createServer(toNodeHandler(handler));
listener.listen(0, '127.0.0.1', () => console.log(listener.address().port));
