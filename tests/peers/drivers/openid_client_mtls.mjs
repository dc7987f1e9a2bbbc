// Certificate-bound flows with unmodified openid-client through an edge that requests certificates; prints the results as JSON.
// Usage: node openid_client_mtls.mjs FILE, where FILE holds {issuer, callback, audience, user, authority, clients}.
import { readFileSync } from 'node:fs'
import https from 'node:https'
import * as client from 'openid-client'
import { Browser } from './browser.mjs'

const given = JSON.parse(readFileSync(process.argv[2], 'utf8'))
const issuer = new URL(given.issuer)
const seen = {}
const read = (file) => readFileSync(file)

// Fetches from a host that is in no name service, with or without a client certificate.
function fetchWith(shown) {
  const agent = new https.Agent({
    ca: read(given.authority),
    ...(shown && { cert: read(shown.certificate), key: read(shown.key) }),
    lookup: (_, options, done) => (options.all ? done(null, [{ address: '127.0.0.1', family: 4 }]) : done(null, '127.0.0.1', 4)),
  })
  return (address, options = {}) => new Promise((resolve, reject) => {
    const { method = 'GET', body } = options
    const headers = Object.fromEntries(new Headers(options.headers))
    const request = https.request(address, { method, headers, agent }, (answer) => {
      const parts = []
      answer.on('data', (part) => parts.push(part))
      answer.on('end', () => {
        const found = new Headers()
        for (let place = 0; place < answer.rawHeaders.length; place += 2) found.append(answer.rawHeaders[place], answer.rawHeaders[place + 1])
        const isEmpty = [204, 303, 302].includes(answer.statusCode) || parts.length === 0
        resolve(new Response(isEmpty ? null : Buffer.concat(parts), { status: answer.statusCode, headers: found }))
      })
    })
    request.on('error', reject)
    request.end(body === undefined || body === null ? undefined : String(body))
  })
}

const without = fetchWith()
// The browser of the user presents no certificate.
globalThis.fetch = without

const claimsOf = (token) => JSON.parse(Buffer.from(token.split('.')[1], 'base64url'))

async function refusal(promise) {
  try {
    await promise
  } catch (error) {
    return error.error ?? error.cause?.error ?? error.code ?? String(error)
  }
  return 'not refused'
}

for (const [kind, known] of Object.entries(given.clients)) {
  const { id } = known
  const withCertificate = fetchWith(known)
  const config = await client.discovery(issuer, id, { use_mtls_endpoint_aliases: true }, client.TlsClientAuth(), { [client.customFetch]: withCertificate })
  const aliases = config.serverMetadata().mtls_endpoint_aliases
  const verifier = client.randomPKCECodeVerifier()
  const checks = { pkceCodeVerifier: verifier, expectedState: client.randomState(), idTokenExpected: true }
  const parameters = {
    redirect_uri: given.callback,
    scope: 'openid email offline_access read:things',
    audience: given.audience,
    state: checks.expectedState,
    code_challenge: await client.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
  }
  const address = await client.buildAuthorizationUrlWithPAR(config, parameters)
  const answer = await new Browser().authorize(address, given)
  const tokens = await client.authorizationCodeGrant(config, answer, checks)
  const bound = claimsOf(tokens.access_token).cnf
  const profile = await client.fetchUserInfo(config, tokens.access_token, tokens.claims().sub)
  const fresh = await client.refreshTokenGrant(config, tokens.refresh_token)
  const stolen = await without(aliases.userinfo_endpoint, { headers: { authorization: `Bearer ${tokens.access_token}` } })
  const form = new URLSearchParams({ grant_type: 'refresh_token', client_id: id, refresh_token: fresh.refresh_token ?? tokens.refresh_token })
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  const unproven = await without(aliases.token_endpoint, { method: 'POST', headers, body: form })
  seen[kind] = {
    'endpoints': Object.values(aliases).every((one) => new URL(one).hostname === `mtls.${issuer.hostname}`),
    'type': tokens.token_type,
    'bound by': Object.keys(bound),
    'profile': profile.email,
    'refreshed': claimsOf(fresh.access_token).cnf['x5t#S256'] === bound['x5t#S256'],
    'profile without the certificate': stolen.status,
    'refresh without the certificate': unproven.status,
  }
  const machine = await client.clientCredentialsGrant(config, { audience: given.audience })
  seen[kind]['client_credentials'] = claimsOf(machine.access_token).cnf['x5t#S256'] === bound['x5t#S256']
}

console.log(JSON.stringify(seen))
process.exit(0)
