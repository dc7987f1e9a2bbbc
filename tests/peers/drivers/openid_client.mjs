// Every login flow with unmodified openid-client over TLS; prints the results as one JSON object.
// Usage: node openid_client.mjs FILE, where FILE holds {issuer, callback, audience, user, clients}; NODE_EXTRA_CA_CERTS names the authority.
import { readFileSync } from 'node:fs'
import { createPrivateKey } from 'node:crypto'
import * as client from 'openid-client'
import { Browser } from './browser.mjs'

const given = JSON.parse(readFileSync(process.argv[2], 'utf8'))
const issuer = new URL(given.issuer)
const seen = {}

function proofOf(kind) {
  const { secret, key } = given.clients[kind]
  switch (kind) {
    case 'post': return client.ClientSecretPost(secret)
    case 'basic': return client.ClientSecretBasic(secret)
    case 'assertion': return importKey(key).then((imported) => client.PrivateKeyJwt(imported))
    default: return client.None()
  }
}

async function importKey(pem) {
  const der = createPrivateKey(pem).export({ format: 'der', type: 'pkcs8' })
  return crypto.subtle.importKey('pkcs8', der, { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }, false, ['sign'])
}

async function configured(kind) {
  return client.discovery(issuer, given.clients[kind].id, undefined, await proofOf(kind))
}

// Returns the error of a call that must fail.
async function refusal(promise) {
  try {
    await promise
  } catch (error) {
    return error.error ?? error.cause?.error ?? error.code ?? String(error)
  }
  return 'not refused'
}

async function codeFlow(kind, browser, extra = {}, options = {}) {
  const config = await configured(kind)
  const verifier = client.randomPKCECodeVerifier()
  const checks = { expectedState: client.randomState(), expectedNonce: client.randomNonce(), idTokenExpected: true }
  const parameters = {
    redirect_uri: given.callback,
    scope: 'openid profile email offline_access read:things',
    audience: given.audience,
    state: checks.expectedState,
    nonce: checks.expectedNonce,
    ...extra,
  }
  if (options.pkce !== false) {
    checks.pkceCodeVerifier = verifier
    parameters.code_challenge = await client.calculatePKCECodeChallenge(verifier)
    parameters.code_challenge_method = 'S256'
  }
  if ('max_age' in extra) checks.maxAge = Number(extra.max_age)
  options.prepare?.(config)
  const answer = await browser.authorize(client.buildAuthorizationUrl(config, parameters), given)
  const tokens = await client.authorizationCodeGrant(config, answer, checks)
  return { config, tokens, answer, checks }
}

function claimsOf(token) {
  return JSON.parse(Buffer.from(token.split('.')[1], 'base64url'))
}

for (const kind of ['public', 'post', 'basic', 'assertion']) {
  const { config, tokens } = await codeFlow(kind, new Browser())
  const claims = tokens.claims()
  const access = claimsOf(tokens.access_token)
  const profile = await client.fetchUserInfo(config, tokens.access_token, claims.sub)
  seen[`code, ${kind}`] = [claims.email, profile.email, access.aud.includes(given.audience), tokens.scope, tokens.token_type, tokens.expires_in]

  const second = await client.refreshTokenGrant(config, tokens.refresh_token)
  const isSame = second.claims().sub === claims.sub && second.claims().auth_time === claims.auth_time
  const reused = await refusal(client.refreshTokenGrant(config, tokens.refresh_token))
  const family = await refusal(client.refreshTokenGrant(config, second.refresh_token))
  seen[`refresh, ${kind}`] = [isSame, second.refresh_token !== tokens.refresh_token, reused, family]
}

{
  const { config, tokens } = await codeFlow('post', new Browser(), {}, { pkce: false })
  await client.tokenRevocation(config, tokens.refresh_token)
  seen['revoked'] = await refusal(client.refreshTokenGrant(config, tokens.refresh_token))
}

{
  const browser = new Browser()
  const { config, answer, checks } = await codeFlow('public', browser)
  seen['code twice'] = await refusal(client.authorizationCodeGrant(config, answer, checks))

  const silent = await codeFlow('public', browser, { prompt: 'none' })
  seen['silent, with a session'] = silent.tokens.claims().email
  const nobody = new URL((await refusalAddress(config, new Browser(), { prompt: 'none' })).href)
  seen['silent, without'] = [nobody.searchParams.get('error'), nobody.searchParams.get('error_description')]

  const again = await codeFlow('public', browser, { max_age: '3600' })
  seen['max_age'] = typeof again.tokens.claims().auth_time
  seen['forms before, after'] = [browser.forms, (await codeFlow('public', browser, { prompt: 'login' })) && browser.forms]

  const out = client.buildEndSessionUrl(config, { id_token_hint: again.tokens.id_token, post_logout_redirect_uri: given.loggedOut, state: 'st' })
  seen['logged out'] = (await browser.leave(out, given.loggedOut)).href
  seen['silent, after logout'] = new URL((await refusalAddress(config, browser, { prompt: 'none' })).href).searchParams.get('error')
}

async function refusalAddress(config, browser, extra) {
  const parameters = { redirect_uri: given.callback, scope: 'openid', code_challenge: 'x'.repeat(43), code_challenge_method: 'S256', ...extra }
  return browser.authorize(client.buildAuthorizationUrl(config, parameters), given)
}

{
  const { tokens } = await codeFlow('post', new Browser(), { response_mode: 'form_post' })
  seen['form_post'] = tokens.claims().email
}

{
  const config = await configured('post')
  client.useIdTokenResponseType(config)
  const nonce = client.randomNonce()
  const address = client.buildAuthorizationUrl(config, { redirect_uri: given.callback, scope: 'openid email', nonce, state: 'st' })
  const claims = await client.implicitAuthentication(config, await new Browser().authorize(address, given), nonce, { expectedState: 'st' })
  seen['id_token'] = claims.email
}

{
  const prepare = (config) => client.useCodeIdTokenResponseType(config)
  const { tokens } = await codeFlow('post', new Browser(), {}, { prepare })
  seen['code id_token'] = tokens.claims().email
}

for (const kind of ['post', 'basic', 'assertion']) {
  const config = await configured(kind)
  const tokens = await client.clientCredentialsGrant(config, { audience: given.audience })
  seen[`client_credentials, ${kind}`] = [claimsOf(tokens.access_token).sub === `${given.clients[kind].id}@clients`, tokens.expires_in]
}

{
  const config = await configured('post')
  const realm = 'http://auth0.com/oauth/grant-type/password-realm'
  const person = { username: given.user.email, password: given.user.password, scope: 'openid', audience: given.audience }
  const one = await client.genericGrantRequest(config, 'password', person)
  const two = await client.genericGrantRequest(config, realm, { ...person, realm: given.user.connection })
  seen['password'] = [one.claims().sub === two.claims().sub, claimsOf(two.access_token).gty]
  seen['wrong password'] = await refusal(client.genericGrantRequest(config, realm, { ...person, password: 'wrong', realm: given.user.connection }))
}

console.log(JSON.stringify(seen))
process.exit(0)
