// npm `samlp` as an identity provider and `passport-wsfed-saml2` as a WS-Federation client: reads one JSON command per line, writes one
// JSON answer per line.
const { createInterface } = require('node:readline');
const samlp = require('samlp');
const { Strategy } = require('passport-wsfed-saml2');

const clients = new Map();

// Runs express middleware with a fake request and response.
const call = (middleware, request) =>
  new Promise((resolve, reject) => {
    const response = {
      set: () => response,
      header: () => response,
      setHeader: () => response,
      status: () => response,
      send: (body) => resolve(body),
    };
    middleware({ headers: {}, query: {}, body: {}, ...request }, response, (error) => reject(error || new Error('not handled')));
  });

const acts = {
  // Answers a request of the redirect binding; returns the page whose form submits itself.
  samlAnswer: ({ options, query, user, reply }) =>
    call(
      samlp.auth({
        ...options,
        getPostURL: (audience, request, req, done) => done(null, reply),
        getUserFromRequest: () => user,
      }),
      { method: 'GET', query },
    ),
  samlMetadata: ({ options }) => call(samlp.metadata(options), { method: 'GET', headers: { host: 'idp.example.test' }, originalUrl: '/samlp/FederationMetadata/2007-06/FederationMetadata.xml', protocol: 'https', connection: {}, get: () => undefined }),
  // Creates a WS-Federation client with options of the library.
  make: ({ name, options }) => {
    clients.set(name, new Strategy(options, (profile, done) => done(null, profile)));
    return true;
  },
  ask: ({ name, options }) =>
    new Promise((resolve, reject) => {
      const strategy = Object.create(clients.get(name));
      Object.assign(strategy, { redirect: resolve, error: reject, fail: reject });
      strategy.authenticate({ method: 'GET', query: {}, body: {} }, options || {});
    }),
  read: ({ name, fields, address }) =>
    new Promise((resolve, reject) => {
      const strategy = Object.create(clients.get(name));
      Object.assign(strategy, { success: resolve, error: reject, fail: reject });
      const { protocol, host, pathname } = new URL(address);
      const request = { method: 'POST', query: {}, body: fields, protocol: protocol.slice(0, -1), headers: { host }, url: pathname };
      strategy.authenticate({ ...request, originalUrl: pathname, get: () => host }, {});
    }),
};

(async () => {
  for await (const line of createInterface({ input: process.stdin })) {
    const command = JSON.parse(line);
    let answer;
    try {
      answer = { done: await acts[command.act](command) };
    } catch (error) {
      answer = { refused: String((error && (error.detail || error.message)) || error) };
    }
    process.stdout.write(`${JSON.stringify(answer)}\n`);
  }
})();
