// The features that the TypeScript clients of the matrix use; prints one line of JSON for each. `features.py` has the same.
import { randomUUID } from 'node:crypto';

const LIMIT = 20_000;
const KEY = randomUUID();
const pause = () => new Promise((resolve) => setTimeout(resolve, 50));

/// Asks again until something holds; does something before each time.
async function until(holds, touch = () => {}) {
  const end = Date.now() + LIMIT - 5000;
  while (Date.now() < end) {
    await touch();
    for (let turn = 0; turn < 5; turn += 1) {
      if (await holds()) return true;
      await pause();
    }
  }
  return false;
}

const code = (call) => call.then(() => null, (error) => error.code);

async function logged(client, level) {
  client.logs.length = 0;
  await client.call('log', {}, { level });
  await until(() => client.logs.includes('an error'));
  return [...client.logs];
}

const features = {
  tools: async (client) => (await client.library.listTools()).tools.map(({ name }) => name),
  call: async (client) => (await client.call('add', { a: 1, b: 2 })).content[0].text,
  structured: async (client) => (await client.call('add', { a: 1, b: 2 })).structuredContent,
  async is_error(client) {
    const { isError, content } = await client.call('fail', {});
    return [isError, content[0].text];
  },
  unknown_tool: (client) => code(client.call('nosuch', {})),
  resources: async (client) => (await client.library.listResources()).resources.map(({ uri }) => uri),
  read: async (client) => (await client.library.readResource({ uri: 'test://plain' })).contents[0].text,
  templates: async (client) =>
    (await client.library.listResourceTemplates()).resourceTemplates.map(({ uriTemplate }) => uriTemplate),
  read_template: async (client) => (await client.library.readResource({ uri: 'test://item/7' })).contents[0].text,
  async missing_resource(client) {
    const found = await code(client.library.readResource({ uri: 'test://missing' }));
    return found === (client.modern() ? -32602 : -32002) || found;
  },
  prompts: async (client) => (await client.library.listPrompts()).prompts.map(({ name }) => name),
  prompt: async (client) =>
    (await client.library.getPrompt({ name: 'greet', arguments: { name: 'Ada' } })).messages[0].content.text,
  completion: async (client) =>
    (await client.library.complete({ ref: { type: 'ref/prompt', name: 'greet' }, argument: { name: 'name', value: 'a' } }))
      .completion.values,
  async progress(client) {
    const heard = [];
    const onprogress = ({ progress, total, message }) => heard.push([progress, total, message]);
    await client.call('progress', {}, { onprogress });
    await until(() => heard.length >= 2);
    return heard;
  },
  log: (client) => logged(client, 'debug'),
  log_level: (client) => logged(client, 'error'),
  async ping(client) {
    await client.library.ping();
    return true;
  },
  async changes(client) {
    const uri = `test://watched/${KEY}`;
    client.updates.length = 0;
    client.changes.length = 0;
    const end = await client.subscribe(uri);
    const heard = () => client.updates.includes(uri) && client.changes.includes('tools');
    await until(heard, () => client.call('touch', { key: KEY }));
    await end();
    return [client.updates.includes(uri), client.changes.includes('tools')];
  },
  elicitation: async (client) => (await client.call('ask_form', {})).content[0].text,
  url_elicitation: async (client) => (await client.call('ask_url', {})).content[0].text,
  sampling: async (client) => (await client.call('ask_sample', {})).content[0].text,
  roots: async (client) => (await client.call('ask_roots', {})).content[0].text,
  several_requests: async (client) => (await client.call('ask_both', {})).content[0].text,
  // Last: see `features.py`.
  async cancellation(client) {
    const cancel = new AbortController();
    const call = client.call('wait', { key: KEY }, { signal: cancel.signal }).catch(() => {});
    const seen = async (what) => (await client.call('seen', { key: KEY })).content[0].text === what;
    await until(() => seen('begun'));
    cancel.abort();
    await call;
    return until(() => seen('cancelled'));
  },
};

/// What a client says when a server asks it.
export const answers = {
  elicits: ({ params }) => ({ action: 'accept', ...(params.mode === 'url' ? {} : { content: { name: 'Ada' } }) }),
  samples: () => ({ role: 'assistant', content: { type: 'text', text: 'hi' }, model: 'none' }),
  roots: () => ({ roots: [{ uri: 'file:///tmp/eras' }] }),
};
export const capabilities = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };

export async function report(client) {
  for (const [feature, use] of Object.entries(features)) {
    let timer;
    const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error('late')), LIMIT); });
    const line = await Promise.race([use(client), late]).then(
      (value) => ({ feature, value }),
      (error) => ({ feature, failed: `${error.name}: ${error.message}`.slice(0, 300) }),
    );
    clearTimeout(timer);
    console.log(JSON.stringify(line));
  }
  process.exit(0);
}
