// npm samlp as a SAML identity provider that has one user: prints a line when it listens. Arguments: port, key file, certificate file.
import { readFileSync } from 'node:fs';
import express from 'express';
import samlp from 'samlp';

const [port, key, cert] = process.argv.slice(2);
const user = {
  id: 'auth0|ada',
  displayName: 'Ada Lovelace',
  name: { givenName: 'Ada', familyName: 'Lovelace' },
  emails: [{ value: 'ada@example.test' }],
};
const app = express();
app.get(
  '/samlp',
  samlp.auth({
    issuer: 'urn:bench',
    audience: 'https://app.example.test',
    key: readFileSync(key),
    cert: readFileSync(cert),
    signatureAlgorithm: 'rsa-sha256',
    digestAlgorithm: 'sha256',
    getPostURL: (audience, request, req, done) => done(null, 'https://app.example.test/acs'),
    getUserFromRequest: () => user,
  }),
);
app.listen(Number(port), '127.0.0.1', () => console.log('ready'));
