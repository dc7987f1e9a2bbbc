// A login with unmodified passport-auth0 over TLS; prints the results as one JSON object.
// Usage: node passport_auth0.mjs FILE, with the same file as openid_client.mjs; NODE_EXTRA_CA_CERTS names the authority.
import { readFileSync } from 'node:fs'
import passport from 'passport'
import Auth0Strategy from 'passport-auth0'
import { Browser } from './browser.mjs'

const given = JSON.parse(readFileSync(process.argv[2], 'utf8'))
const { id, secret } = given.clients.post
const options = { domain: new URL(given.issuer).host, clientID: id, clientSecret: secret, callbackURL: given.callback }
passport.use(new Auth0Strategy(options, (accessToken, refreshToken, params, profile, done) => done(null, { params, profile })))

// Sends one request through the middleware; returns the redirect or the logged-in user.
function pass(address, session) {
  const query = Object.fromEntries(new URL(address, given.callback).searchParams)
  const request = { method: 'GET', url: address, headers: {}, query, session }
  return new Promise((resolve, reject) => {
    const answer = { setHeader: (name, value) => { if (name === 'Location') resolve(value) }, end: () => reject(new Error(`refused: ${answer.statusCode}`)) }
    const scope = 'openid profile email'
    passport.authenticate('auth0', { session: false, scope })(request, answer, (error) => error ? reject(error) : resolve(request.user))
  })
}

const session = {}
const reached = await new Browser().authorize(await pass('/login', session), given)
const { params, profile } = await pass(`/callback${reached.search}`, session)
console.log(JSON.stringify({
  provider: profile.provider,
  id: profile.id,
  email: profile.emails[0].value,
  name: profile.displayName,
  updated: typeof profile._json.updated_at,
  hasIdToken: params.id_token.split('.').length === 3
}))
