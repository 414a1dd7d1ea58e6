// What the conformance suites expect of a server of either era: contents, resources, prompts and schemas.
export const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';
export const WAV = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=';
export const text = (text) => ({ type: 'text', text });
const image = { type: 'image', data: PNG, mimeType: 'image/png' };
const resource = (uri, mimeType, text) => ({ type: 'resource', resource: { uri, mimeType, text } });
export const pause = () => new Promise((resolve) => setTimeout(resolve, 50));

/// The tools that ask the client nothing and send it nothing before their results.
export const tools = {
  test_simple_text: () => [text('This is a simple text response for testing.')],
  test_image_content: () => [image],
  test_audio_content: () => [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }],
  test_embedded_resource: () => [resource('test://embedded-resource', 'text/plain', 'This is an embedded resource content.')],
  test_multiple_content_types: () => [
    text('Multiple content types test:'),
    image,
    resource('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'),
  ],
  test_error_handling() {
    throw new Error('This tool intentionally returns an error for testing');
  },
  json_schema_2020_12_tool: (input) => [text(`JSON Schema 2020-12 tool called with: ${JSON.stringify(input)}`)],
};

export const inputs = {
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

const asks = (message, properties, required = Object.keys(properties)) => ({
  mode: 'form',
  message,
  requestedSchema: { type: 'object', properties, required },
});
const string = { type: 'string' };
const options = [
  { const: 'value1', title: 'First Option' },
  { const: 'value2', title: 'Second Option' },
  { const: 'value3', title: 'Third Option' },
];
const words = ['option1', 'option2', 'option3'];

/// The forms that clients are asked to fill in.
export const forms = {
  test_elicitation: (message) => asks(message, { username: string, email: string }),
  test_elicitation_sep1034_defaults: () =>
    asks('Please review the defaults', {
      name: { type: 'string', default: 'John Doe' },
      age: { type: 'integer', default: 30 },
      score: { type: 'number', default: 95.5 },
      status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
      verified: { type: 'boolean', default: true },
    }, []),
  test_elicitation_sep1330_enums: () =>
    asks('Please choose', {
      untitledSingle: { type: 'string', enum: words },
      titledSingle: { type: 'string', oneOf: options },
      legacyEnum: { type: 'string', enum: ['opt1', 'opt2', 'opt3'], enumNames: ['One', 'Two', 'Three'] },
      untitledMulti: { type: 'array', items: { type: 'string', enum: words } },
      titledMulti: { type: 'array', items: { anyOf: options } },
    }, []),
  user_name: () => asks('What is your name?', { name: string }),
  confirm: () => asks('Please confirm', { ok: { type: 'boolean' } }),
  step1: () => asks('Step 1: What is your name?', { name: string }),
  step2: () => asks('Step 2: What is your favorite color?', { color: string }),
  user_context: () => asks('What context should the prompt use?', { context: string }),
};

export const contents = {
  'test://static-text': { mimeType: 'text/plain', text: 'This is the content of the static text resource.' },
  'test://static-binary': { mimeType: 'image/png', blob: PNG },
  'test://watched-resource': { mimeType: 'text/plain', text: 'Watched resource content' },
};

const user = (content) => ({ role: 'user', content });
export const prompts = {
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

/// Returns the lists of a server with these further tools and prompts, by method.
export const lists = (names, morePrompts = []) => ({
  'tools/list': () => ({
    tools: names.map((name) => ({ name, description: name, inputSchema: { type: 'object', ...inputs[name] } })),
  }),
  'resources/list': () => ({
    resources: Object.entries(contents).map(([uri, { mimeType }]) => ({ uri, name: uri, description: uri, mimeType })),
  }),
  'resources/templates/list': () => ({
    resourceTemplates: [{ uriTemplate: 'test://template/{id}/data', name: 'template', mimeType: 'application/json' }],
  }),
  'prompts/list': () => ({
    prompts: [...Object.keys(prompts), ...morePrompts].map((name) => ({
      name,
      description: name,
      arguments: promptArguments[name],
    })),
  }),
  'completion/complete': () => ({ completion: { values: ['paris', 'park', 'party'], total: 3, hasMore: false } }),
});

/// Returns the contents of a resource, or nothing if there is none.
export function read(uri) {
  const template = /^test:\/\/template\/([^/]+)\/data$/.exec(uri);
  if (template) {
    const data = JSON.stringify({ id: template[1], templateTest: true, data: `Data for ID: ${template[1]}` });
    return { uri, mimeType: 'application/json', text: data };
  }
  return contents[uri] && { uri, ...contents[uri] };
}
