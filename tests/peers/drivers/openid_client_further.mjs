// Devices, token exchange, introspection and registration with unmodified openid-client over TLS; prints the results as JSON.
// Usage: node openid_client_further.mjs FILE, where FILE holds {issuer, callback, activated, audience, next, user, clients}; NODE_EXTRA_CA_CERTS names the authority.
import { readFileSync } from 'node:fs'
import * as client from 'openid-client'
import { Browser } from './browser.mjs'

const given = JSON.parse(readFileSync(process.argv[2], 'utf8'))
const issuer = new URL(given.issuer)
const seen = {}
const claimsOf = (token) => JSON.parse(Buffer.from(token.split('.')[1], 'base64url'))
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token'

async function refusal(promise) {
  try {
    await promise
  } catch (error) {
    return error.error ?? error.cause?.error ?? error.code ?? String(error)
  }
  return 'not refused'
}

async function tokensOf(config, extra = {}) {
  const verifier = client.randomPKCECodeVerifier()
  const checks = { pkceCodeVerifier: verifier, expectedState: client.randomState(), idTokenExpected: true }
  const address = client.buildAuthorizationUrl(config, {
    redirect_uri: given.callback,
    scope: 'openid email read:things',
    state: checks.expectedState,
    code_challenge: await client.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    ...extra,
  })
  return client.authorizationCodeGrant(config, await new Browser().authorize(address, given), checks)
}

// A device polls while the user enters its code in a browser; with and without a proof of its key.
for (const [name, options] of [['device', () => undefined], ['device with a key', async (config) => ({ DPoP: client.getDPoPHandle(config, await client.randomDPoPKeyPair('ES256')) })]]) {
  const config = await client.discovery(issuer, given.clients.device, undefined, client.None())
  const started = await client.initiateDeviceAuthorization(config, { scope: 'openid email' })
  const polling = client.pollDeviceAuthorizationGrant(config, { ...started, interval: 1 }, undefined, await options(config))
  await new Browser().leave(started.verification_uri_complete, given.activated, given.user)
  const tokens = await polling
  seen[name] = [tokens.claims().email, tokens.token_type]
}

// An API exchanges the received token for a token for the next API, and introspects it.
{
  const { id, secret } = given.clients.api
  const application = await client.discovery(issuer, given.clients.web.id, undefined, client.ClientSecretPost(given.clients.web.secret))
  const { access_token: subject } = await tokensOf(application, { audience: given.audience })
  const config = await client.discovery(issuer, id, undefined, client.ClientSecretPost(secret))
  const parameters = { subject_token: subject, subject_token_type: ACCESS_TOKEN, audience: given.next }
  const exchanged = await client.genericGrantRequest(config, EXCHANGE, parameters)
  const claims = claimsOf(exchanged.access_token)
  seen['exchange'] = [claims.aud, claims.sub === claimsOf(subject).sub, typeof claims.act.sub, exchanged.issued_token_type === ACCESS_TOKEN]
  seen['exchange of nonsense'] = await refusal(client.genericGrantRequest(config, EXCHANGE, { ...parameters, subject_token: 'x.y.z' }))
  const told = await client.tokenIntrospection(config, subject)
  seen['introspection'] = [told.active, told.client_id === given.clients.web.id]
  seen['introspection of nonsense'] = (await client.tokenIntrospection(config, 'nonsense')).active
}

// A client registers itself and logs a user in.
{
  const metadata = { redirect_uris: [given.callback], client_name: 'Registered', token_endpoint_auth_method: 'client_secret_post' }
  const config = await client.dynamicClientRegistration(issuer, metadata, client.ClientSecretPost())
  const known = config.clientMetadata()
  seen['registered'] = [typeof known.client_id, typeof known.client_secret, typeof known.registration_access_token]
}

console.log(JSON.stringify(seen))
process.exit(0)
