// The older client for Node, a dependency of the newer one, requests codes and logs in with them.
const { readFileSync } = require("node:fs");
const { AuthenticationClient } = require("auth0/legacy");

const given = JSON.parse(readFileSync(process.argv[2], "utf8"));
const { passwordless } = new AuthenticationClient({ domain: given.domain, clientId: given.client, clientSecret: given.secret });

async function told(call) {
  try {
    return (await call()).data ?? "done";
  } catch (error) {
    return [error.name, error.statusCode, error.error, error.error_description];
  }
}

async function loggedIn(call) {
  const answer = await told(call);
  return Array.isArray(answer) ? answer : Object.keys(answer).sort();
}

async function ask() {
  return {
    mailed: await told(() => passwordless.sendEmail({ email: given.email, send: "code" })),
    texted: await told(() => passwordless.sendSMS({ phone_number: given.number })),
    "invalid number": await told(() => passwordless.sendSMS({ phone_number: "5550100" })),
  };
}

async function logIn() {
  return {
    wrong: await loggedIn(() => passwordless.loginWithEmail({ email: given.email, code: given.wrong })),
    "by mail": await loggedIn(() => passwordless.loginWithEmail({ email: given.email, code: given.mailed, scope: "openid" })),
    "by text": await loggedIn(() => passwordless.loginWithSMS({ phone_number: given.number, code: given.texted, scope: "openid" })),
  };
}

({ ask, "log in": logIn })[given.step]().then((seen) => process.stdout.write(JSON.stringify(seen)));
