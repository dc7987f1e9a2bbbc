// npm oidc-provider as the peer: RS256 with 2048 bits, JWT access tokens for one API, DPoP; one process by default. Its rows are in memory,
// or in PostgreSQL if PEER_TABLE names a table.
// Usage: node provider.mjs PORT COUNT [PROCESSES]; prints one JSON line for each process that listens, with a refresh token and an
// access token for each of COUNT connections. Processes share the port, but not the keys and the tokens in memory.
import cluster from 'node:cluster'
import { generateKeyPairSync } from 'node:crypto'
import { Provider } from 'oidc-provider'

const [port, count, processes = 1] = process.argv.slice(2).map(Number)
const audience = 'https://things.example.test/'
const stored = new Map()

// Keeps every entry; the default adapter keeps only a thousand.
class Memory {
  constructor(name) { this.name = name }
  key(id) { return `${this.name}:${id}` }
  async upsert(id, payload) { stored.set(this.key(id), payload) }
  async find(id) { return stored.get(this.key(id)) }
  async findByUid() {}
  async findByUserCode() {}
  async consume(id) { stored.get(this.key(id)).consumed = Math.floor(Date.now() / 1000) }
  async destroy(id) { stored.delete(this.key(id)) }
  async revokeByGrantId() {}
}

async function chosenAdapter() {
  if (!process.env.PEER_TABLE) return Memory
  const { PostgresRows, createTable } = await import('./postgres_rows.mjs')
  await createTable()
  return PostgresRows
}

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const provider = new Provider(`http://127.0.0.1:${port}`, {
  adapter: await chosenAdapter(),
  jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'RS256' }] },
  cookies: { keys: ['only-for-a-measurement'] },
  clients: [{
    client_id: 'bench',
    client_secret: 'only-for-a-measurement',
    grant_types: ['client_credentials', 'refresh_token', 'authorization_code'],
    redirect_uris: ['https://app.example.test/callback'],
    token_endpoint_auth_method: 'client_secret_post',
  }],
  scopes: ['openid', 'offline_access', 'email'],
  claims: { email: ['email'] },
  rotateRefreshToken: true,
  conformIdTokenClaims: false,
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, email: `${id}@example.test` }) }),
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: false },
    dPoP: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => audience,
      useGrantedResource: () => true,
      getResourceServerInfo: () => ({ scope: 'read:things', audience, accessTokenTTL: 86400, accessTokenFormat: 'jwt', jwt: { sign: { alg: 'RS256' } } }),
    },
  },
})

const client = await provider.Client.find('bench')

async function granted(accountId) {
  const grant = new provider.Grant({ accountId, clientId: 'bench' })
  grant.addOIDCScope('openid offline_access email')
  grant.addResourceScope(audience, 'read:things')
  return grant.save()
}

async function refreshToken(accountId) {
  const scope = 'openid offline_access email read:things'
  const grantId = await granted(accountId)
  return new provider.RefreshToken({ accountId, client, grantId, scope, gty: 'authorization_code', resource: audience }).save()
}

async function accessToken(accountId) {
  const grantId = await granted(accountId)
  return new provider.AccessToken({ accountId, client, grantId, scope: 'openid email', gty: 'authorization_code' }).save()
}

async function serve() {
  const people = Array.from({ length: count }, (_, number) => `ada${number}`)
  const refresh = await Promise.all(people.map(refreshToken))
  const access = await Promise.all(people.map(accessToken))
  provider.listen(port, '127.0.0.1', () => console.log(JSON.stringify({ refresh, access })))
}

if (processes > 1 && cluster.isPrimary) {
  for (let started = 0; started < processes; started++) cluster.fork()
  process.on('SIGTERM', () => {
    for (const worker of Object.values(cluster.workers)) worker.kill()
    process.exit(0)
  })
} else {
  await serve()
}
