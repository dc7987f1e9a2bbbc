// The unmodified SCIM server of saml-jackson with its data in memory: this file sets up its route, its token and its port.
// Run as `node serve.cjs PORT`; the variable SCIM_TOKEN has the bearer token.
"use strict";

const express = require("express");
const { controllers } = require("@boxyhq/saml-jackson");

const [port, token] = [Number(process.argv[2]), process.env.SCIM_TOKEN];

const number = (text) => (text === undefined ? undefined : Number(text));

// The package generates the secret of a directory: replace the known token with it, and pass every other token on.
function secretOf(request, directory) {
  const given = (request.header("Authorization") ?? "").replace(/^Bearer /, "");
  return given === token ? directory.scim.secret : given;
}

async function main() {
  const jackson = await controllers({
    externalUrl: `http://127.0.0.1:${port}`,
    samlAudience: "peers",
    samlPath: "/saml",
    scimPath: "/scim",
    db: { engine: "mem" },
    logger: { info() {}, error: console.error },
  });
  const { directories, requests } = jackson.directorySyncController;
  const { data: directory, error } = await directories.create({ name: "peers", tenant: "peers", product: "peers", type: "generic-scim-v2" });
  if (error) throw error;

  const application = express();
  application.use(express.json({ type: () => true }));
  application.all("/scim/v2/:type{/:id}", async (request, response) => {
    const { startIndex, count, filter } = request.query;
    const answer = await requests.handle(
      {
        method: request.method,
        body: request.body ?? {},
        resourceType: request.params.type.toLowerCase(),
        resourceId: request.params.id,
        directoryId: directory.id,
        apiSecret: secretOf(request, directory),
        query: { startIndex: number(startIndex), count: number(count), filter },
      },
      () => {},
    );
    response.status(answer.status).json(answer.data);
  });
  application.listen(port, "127.0.0.1");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
