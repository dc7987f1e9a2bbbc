// An approval request with unmodified openid-client over TLS; prints the results as one JSON object.
// Usage: node openid_client_ciba.mjs FILE, where FILE holds {issuer, client, user, sub, link, approved}; NODE_EXTRA_CA_CERTS names the authority.
// The link of the mail is read from the file `link`, which exists as soon as the mail is sent.
import { existsSync, readFileSync } from 'node:fs'
import * as client from 'openid-client'
import { Browser } from './browser.mjs'

const given = JSON.parse(readFileSync(process.argv[2], 'utf8'))
const config = await client.discovery(new URL(given.issuer), given.client.id, undefined, client.ClientSecretPost(given.client.secret))
const hint = (sub) => JSON.stringify({ format: 'iss_sub', iss: given.issuer, sub })
const asked = (sub) => ({ scope: 'openid email', binding_message: '21-49-38', login_hint: hint(sub) })
const seen = {}

const started = await client.initiateBackchannelAuthentication(config, asked(given.sub))
seen.started = [typeof started.auth_req_id, started.expires_in, started.interval]
const polling = client.pollBackchannelAuthenticationGrant(config, { ...started, interval: 1 })

while (!existsSync(given.link)) await new Promise((resolve) => setTimeout(resolve, 100))
await new Browser().leave(readFileSync(given.link, 'utf8'), given.approved, given.user)
const tokens = await polling
seen.tokens = [tokens.claims().email, tokens.claims().sub === given.sub, tokens.token_type]

try {
  await client.initiateBackchannelAuthentication(config, asked('auth0|nobody'))
} catch (error) {
  seen.unknown = [error.status, error.error, error.error_description]
}
console.log(JSON.stringify(seen))
process.exit(0)
