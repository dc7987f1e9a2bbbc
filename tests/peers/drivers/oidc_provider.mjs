// npm oidc-provider with its own login pages, for one client. Usage: node oidc_provider.mjs PORT CALLBACK ALGORITHM
import { generateKeyPairSync } from 'node:crypto'
import { Provider } from 'oidc-provider'

const [port, callback, algorithm] = process.argv.slice(2)
const { privateKey: rsa } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const { privateKey: curve } = generateKeyPairSync('ec', { namedCurve: 'P-256' })

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [{
    client_id: 'tenant',
    client_secret: 'only-for-a-test',
    grant_types: ['authorization_code'],
    redirect_uris: [callback],
    post_logout_redirect_uris: ['https://app.example.test/bye'],
    id_token_signed_response_alg: algorithm,
    token_endpoint_auth_method: 'client_secret_basic',
  }],
  jwks: {
    keys: [
      { ...rsa.export({ format: 'jwk' }), use: 'sig', alg: 'RS256' },
      { ...curve.export({ format: 'jwk' }), use: 'sig', alg: 'ES256' },
    ],
  },
  cookies: { keys: ['only-for-a-test'] },
  claims: { email: ['email', 'email_verified'], profile: ['name'] },
  pkce: { required: () => true },
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, email: `${id}@corp.example.test`, email_verified: true, name: `Name of ${id}` }),
  }),
})

provider.listen(Number(port), '127.0.0.1', () => console.log('listening'))
