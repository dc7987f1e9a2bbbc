// A simple adapter of npm oidc-provider for PostgreSQL: one pool, one table, the payload as jsonb. It implements only the required interface.
// Statements have names, so that the server parses them once per connection, as for this service.
import pg from 'pg'

// The load generator opens at most ten connections, and each of them needs one statement at a time.
const pool = new pg.Pool({ max: 10 })
const TABLE = process.env.PEER_TABLE

const TEXTS = {
  upsert: `INSERT INTO ${TABLE} (model, id, payload, grant_id, user_code, uid, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (model, id) DO UPDATE SET payload = EXCLUDED.payload, grant_id = EXCLUDED.grant_id,
    user_code = EXCLUDED.user_code, uid = EXCLUDED.uid, expires_at = EXCLUDED.expires_at`,
  find: `SELECT payload, expires_at, consumed_at FROM ${TABLE} WHERE model = $1 AND id = $2`,
  findByUserCode: `SELECT payload, expires_at, consumed_at FROM ${TABLE} WHERE model = $1 AND user_code = $2`,
  findByUid: `SELECT payload, expires_at, consumed_at FROM ${TABLE} WHERE model = $1 AND uid = $2`,
  consume: `UPDATE ${TABLE} SET consumed_at = now() WHERE model = $1 AND id = $2`,
  destroy: `DELETE FROM ${TABLE} WHERE model = $1 AND id = $2`,
  revokeByGrantId: `DELETE FROM ${TABLE} WHERE grant_id = $1`,
}

export async function createTable() {
  await pool.query(`CREATE TABLE IF NOT EXISTS ${TABLE} (model text NOT NULL, id text NOT NULL, payload jsonb NOT NULL, grant_id text,
    user_code text, uid text, expires_at timestamptz, consumed_at timestamptz, PRIMARY KEY (model, id))`)
  for (const column of ['grant_id', 'user_code', 'uid', 'expires_at']) {
    await pool.query(`CREATE INDEX IF NOT EXISTS ${TABLE}_${column} ON ${TABLE} (${column})`)
  }
}

async function ask(name, values) {
  return (await pool.query({ name, text: TEXTS[name], values })).rows
}

function living([row]) {
  if (row === undefined || (row.expires_at !== null && row.expires_at < new Date())) return undefined
  return row.consumed_at === null ? row.payload : { ...row.payload, consumed: true }
}

export class PostgresRows {
  constructor(model) { this.model = model }

  async upsert(id, payload, expiresIn) {
    const until = expiresIn ? new Date(Date.now() + expiresIn * 1000) : null
    await ask('upsert', [this.model, id, payload, payload.grantId, payload.userCode, payload.uid, until])
  }

  async find(id) { return living(await ask('find', [this.model, id])) }

  async findByUserCode(userCode) { return living(await ask('findByUserCode', [this.model, userCode])) }

  async findByUid(uid) { return living(await ask('findByUid', [this.model, uid])) }

  async consume(id) { await ask('consume', [this.model, id]) }

  async destroy(id) { await ask('destroy', [this.model, id]) }

  async revokeByGrantId(grantId) { await ask('revokeByGrantId', [grantId]) }
}
