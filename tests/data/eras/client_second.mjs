// A client of the matrix by the second major version of the official TypeScript library.
// Usage: client_second.mjs PEERS URL MODE
import { answers, capabilities, report } from './features.mjs';
import { load } from './served.mjs';

const { Client, StreamableHTTPClientTransport } = await load('@modelcontextprotocol/client');
const [url, mode] = process.argv.slice(3);
const MODERN = '2026-07-28';
const LEVEL = 'io.modelcontextprotocol/logLevel';

const versionNegotiation = { mode: mode === MODERN ? { pin: mode } : mode };
const library = new Client({ name: 'eras', version: '1' }, { capabilities, versionNegotiation });
const client = {
  library,
  logs: [],
  updates: [],
  changes: [],
  modern: () => library.getNegotiatedProtocolVersion() === MODERN,
  async call(name, given, { level, ...options } = {}) {
    if (level && !client.modern()) await library.setLoggingLevel(level);
    const _meta = level && client.modern() ? { [LEVEL]: level } : undefined;
    return library.callTool({ name, arguments: given, ...(_meta && { _meta }) }, options);
  },
  async subscribe(uri) {
    if (client.modern()) {
      const subscription = await library.listen({ toolsListChanged: true, resourceSubscriptions: [uri] });
      return () => subscription.close();
    }
    await library.subscribeResource({ uri });
    return () => library.unsubscribeResource({ uri });
  },
};
library.setRequestHandler('elicitation/create', answers.elicits);
library.setRequestHandler('sampling/createMessage', answers.samples);
library.setRequestHandler('roots/list', answers.roots);
library.setNotificationHandler('notifications/message', ({ params }) => { client.logs.push(params.data); });
library.setNotificationHandler('notifications/resources/updated', ({ params }) => { client.updates.push(params.uri); });
library.setNotificationHandler('notifications/tools/list_changed', () => { client.changes.push('tools'); });
await library.connect(new StreamableHTTPClientTransport(new URL(url)));
await report(client);
