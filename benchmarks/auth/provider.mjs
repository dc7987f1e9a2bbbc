// npm oidc-provider as the peer: one process, tokens in memory, RS256 with 2048 bits, JWT access tokens for one API.
// Usage: node provider.mjs PORT COUNT [PROCESSES]; prints one JSON line for each process that listens, with a refresh token for
// each of COUNT connections and an access token. Processes share the port, and neither tokens nor keys.
import cluster from 'node:cluster'
import { generateKeyPairSync } from 'node:crypto'
import { Provider } from 'oidc-provider'

const [port, count, processes = 1] = process.argv.slice(2).map(Number)
const audience = 'https://things.example.test/'
const stored = new Map()

// The default adapter forgets after a thousand entries.
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

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const provider = new Provider(`http://127.0.0.1:${port}`, {
  adapter: Memory,
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
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, email: 'ada@example.test' }) }),
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: false },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => audience,
      useGrantedResource: () => true,
      getResourceServerInfo: () => ({ scope: 'read:things', audience, accessTokenTTL: 86400, accessTokenFormat: 'jwt', jwt: { sign: { alg: 'RS256' } } }),
    },
  },
})

const client = await provider.Client.find('bench')

async function granted() {
  const grant = new provider.Grant({ accountId: 'ada', clientId: 'bench' })
  grant.addOIDCScope('openid offline_access email')
  grant.addResourceScope(audience, 'read:things')
  return grant.save()
}

async function refreshToken() {
  const scope = 'openid offline_access email read:things'
  const grantId = await granted()
  return new provider.RefreshToken({ accountId: 'ada', client, grantId, scope, gty: 'authorization_code', resource: audience }).save()
}

async function serve() {
  const accessToken = new provider.AccessToken({ accountId: 'ada', client, grantId: await granted(), scope: 'openid email', gty: 'authorization_code' })
  const refresh = await Promise.all(Array.from({ length: count }, refreshToken))
  provider.listen(port, '127.0.0.1', async () => {
    console.log(JSON.stringify({ refresh, access: await accessToken.save() }))
  })
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
