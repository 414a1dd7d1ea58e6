// What the servers of the matrix by the TypeScript libraries have in common.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

/// Imports a module of the peers; the second argument of each script is a file beside its `node_modules`.
const require = createRequire(process.argv[2]);
export const load = (name) => import(pathToFileURL(require.resolve(name)));

export const text = (value) => ({ type: 'text', text: value });
export const said = (value) => ({ content: [text(value)] });
export const greeted = ({ action, content }) => `${action} ${content?.name}`;
export const FORM = {
  mode: 'form',
  message: 'Who?',
  requestedSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
};
export const URL_FORM = { mode: 'url', message: 'Open it.', url: 'https://example.test/' };
export const SAMPLE = { messages: [{ role: 'user', content: text('Say hi.') }], maxTokens: 9 };

const integer = { type: 'integer' };
const numbers = { type: 'object', properties: { a: integer, b: integer }, required: ['a', 'b'] };
const total = { type: 'object', properties: { sum: integer }, required: ['sum'] };
const key = { type: 'object', properties: { key: { type: 'string' } } };
const others = ['ask_both', 'ask_form', 'ask_roots', 'ask_sample', 'ask_url', 'fail', 'log', 'progress', 'seen', 'touch', 'wait'];
const names = ['ada', 'alan', 'grace'];

export const lists = {
  'tools/list': () => ({
    tools: [
      { name: 'add', title: 'Add', description: 'Adds two numbers.', inputSchema: numbers, outputSchema: total },
      ...others.map((name) => ({ name, description: name, inputSchema: key })),
    ],
  }),
  'resources/list': () => ({ resources: [{ uri: 'test://plain', name: 'plain', mimeType: 'text/plain' }] }),
  'resources/templates/list': () => ({ resourceTemplates: [{ uriTemplate: 'test://item/{id}', name: 'item' }] }),
  'prompts/list': () => ({ prompts: [{ name: 'greet', arguments: [{ name: 'name', required: true }] }] }),
  'prompts/get': ({ params }) => ({ messages: [{ role: 'user', content: text(`Hello ${params.arguments?.name}`) }] }),
  'completion/complete': ({ params }) => ({
    completion: { values: names.filter((name) => name.startsWith(params.argument.value)) },
  }),
};

/// Returns the text of a resource, or nothing if there is none.
export function content(uri) {
  if (uri === 'test://plain') return 'plain text';
  return uri.startsWith('test://item/') ? `item ${uri.split('/').pop()}` : undefined;
}

const calls = {};

/// The tools that need nothing of the library; `signal` is aborted when the call is cancelled.
export const tools = {
  add: ({ a, b }) => ({ ...said(String(a + b)), structuredContent: { sum: a + b } }),
  fail: () => ({ ...said('out of paper'), isError: true }),
  seen: ({ key }) => said(calls[key] ?? 'nothing'),
  wait: ({ key }, signal) =>
    new Promise((resolve) => {
      calls[key] = 'begun';
      const timer = setTimeout(() => resolve(said('late')), 60_000);
      signal.addEventListener('abort', () => {
        calls[key] = 'cancelled';
        clearTimeout(timer);
        resolve(said('cancelled'));
      });
    }),
};
