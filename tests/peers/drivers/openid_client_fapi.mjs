// Pushed, signed and key-bound flows with unmodified openid-client over TLS; prints the results as one JSON object.
// Usage: node openid_client_fapi.mjs FILE, where FILE holds {issuer, callback, audience, user, client}; NODE_EXTRA_CA_CERTS names the authority.
import { readFileSync } from 'node:fs'
import { createPrivateKey } from 'node:crypto'
import * as client from 'openid-client'
import { Browser } from './browser.mjs'

const given = JSON.parse(readFileSync(process.argv[2], 'utf8'))
const issuer = new URL(given.issuer)
const seen = {}

async function importKey(pem, name) {
  const der = createPrivateKey(pem).export({ format: 'der', type: 'pkcs8' })
  return crypto.subtle.importKey('pkcs8', der, { name, hash: 'SHA-256' }, false, ['sign'])
}

function claimsOf(token) {
  return JSON.parse(Buffer.from(token.split('.')[1], 'base64url'))
}

async function refusal(promise) {
  try {
    await promise
  } catch (error) {
    return error.error ?? error.cause?.error ?? error.code ?? String(error)
  }
  return 'not refused'
}

const proof = client.PrivateKeyJwt(await importKey(given.client.key, 'RSASSA-PKCS1-v1_5'))
const config = await client.discovery(issuer, given.client.id, undefined, proof)
const server = config.serverMetadata()
seen['discovery'] = [
  server.pushed_authorization_request_endpoint === `${given.issuer}oauth/par`,
  server.request_parameter_supported,
  server.dpop_signing_alg_values_supported.includes('ES256'),
]

const DPoP = client.getDPoPHandle(config, await client.randomDPoPKeyPair('ES256'))
const signing = await importKey(given.client.requestKey, 'RSA-PSS')

async function asked(extra = {}) {
  const verifier = client.randomPKCECodeVerifier()
  const checks = { pkceCodeVerifier: verifier, expectedState: client.randomState(), expectedNonce: client.randomNonce(), idTokenExpected: true }
  const parameters = {
    redirect_uri: given.callback,
    scope: 'openid email offline_access read:things',
    audience: given.audience,
    state: checks.expectedState,
    nonce: checks.expectedNonce,
    code_challenge: await client.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    ...extra,
  }
  return { checks, parameters }
}

async function exchanged(name, address, checks, options) {
  const answer = await new Browser().authorize(address, given)
  const tokens = await client.authorizationCodeGrant(config, answer, checks, undefined, options)
  const access = claimsOf(tokens.access_token)
  seen[name] = [tokens.claims().email, tokens.token_type, typeof access.cnf?.jkt]
  return { tokens, answer }
}

// A pushed request with a proof of the key, which binds the code to this key.
{
  const { checks, parameters } = await asked()
  const address = await client.buildAuthorizationUrlWithPAR(config, parameters, { DPoP })
  seen['address holds'] = [...address.searchParams.keys()].sort()
  const { tokens, answer } = await exchanged('pushed', address, checks, { DPoP })
  const profile = await client.fetchUserInfo(config, tokens.access_token, tokens.claims().sub, { DPoP })
  seen['profile'] = profile.email
  seen['profile without the key'] = await refusal(client.fetchUserInfo(config, tokens.access_token, tokens.claims().sub))
  const thief = client.getDPoPHandle(config, await client.randomDPoPKeyPair('ES256'))
  seen['profile with another key'] = await refusal(client.fetchUserInfo(config, tokens.access_token, tokens.claims().sub, { DPoP: thief }))
  const fresh = await client.refreshTokenGrant(config, tokens.refresh_token, undefined, { DPoP })
  seen['refreshed'] = [fresh.token_type, claimsOf(fresh.access_token).cnf.jkt === claimsOf(tokens.access_token).cnf.jkt]
  seen['code twice'] = await refusal(client.authorizationCodeGrant(config, answer, checks, undefined, { DPoP }))
}

// A signed request: first in the URL, then pushed.
{
  const { checks, parameters } = await asked()
  const address = await client.buildAuthorizationUrlWithJAR(config, parameters, signing)
  seen['signed address holds'] = [...address.searchParams.keys()].sort()
  await exchanged('signed', address, checks)
}
{
  const { checks, parameters } = await asked()
  const signed = await client.buildAuthorizationUrlWithJAR(config, parameters, signing)
  const address = await client.buildAuthorizationUrlWithPAR(config, signed.searchParams, { DPoP })
  await exchanged('signed and pushed', address, checks, { DPoP })
}

{
  const tokens = await client.clientCredentialsGrant(config, { audience: given.audience }, { DPoP })
  seen['client_credentials'] = [tokens.token_type, typeof claimsOf(tokens.access_token).cnf.jkt]
}

console.log(JSON.stringify(seen))
process.exit(0)
