// @node-saml/node-saml as a service provider: reads one JSON command per line, writes one JSON answer per line.
import { createInterface } from 'node:readline';
import { SAML, generateServiceProviderMetadata } from '@node-saml/node-saml';

const providers = new Map();

const acts = {
  // Creates a service provider with options of the library.
  make: ({ name, options }) => {
    providers.set(name, new SAML(options));
    return true;
  },
  metadata: ({ options }) => generateServiceProviderMetadata(options),
  askByRedirect: ({ name, relayState }) => providers.get(name).getAuthorizeUrlAsync(relayState, undefined, {}),
  askByPost: ({ name, relayState }) => providers.get(name).getAuthorizeMessageAsync(relayState, undefined, {}),
  readResponse: async ({ name, fields }) => {
    const { profile, loggedOut } = await providers.get(name).validatePostResponseAsync(fields);
    return { profile, loggedOut };
  },
  readRequest: async ({ name, fields }) => {
    const { profile } = await providers.get(name).validatePostRequestAsync(fields);
    return { profile };
  },
  readRedirect: async ({ name, fields, query }) => {
    const { profile, loggedOut } = await providers.get(name).validateRedirectAsync(fields, query);
    return { profile, loggedOut };
  },
  logOut: ({ name, profile, relayState }) => providers.get(name).getLogoutUrlAsync(profile, relayState, {}),
  answerLogout: ({ name, profile, relayState }) =>
    new Promise((resolve, reject) =>
      providers
        .get(name)
        .getLogoutResponseUrl(profile, relayState, {}, true, (error, url) => (error ? reject(error) : resolve(url))),
    ),
};

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  let answer;
  try {
    answer = { done: await acts[command.act](command) };
  } catch (error) {
    answer = { refused: String(error.message) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
