// Calls the management interface with the unmodified Node client and prints the results.
"use strict";

const { ConnectionsClient } = require("auth0/connections");
const { EventStreamsClient } = require("auth0/eventStreams");
const { UsersClient } = require("auth0/users");

const [baseUrl, token, actionId] = process.argv.slice(2);
const options = { baseUrl, token };
const connections = new ConnectionsClient(options);
const eventStreams = new EventStreamsClient(options);
const users = new UsersClient(options);
const seen = {};

async function statusOf(call) {
  try {
    await call();
  } catch (error) {
    return error.statusCode;
  }
  return 0;
}

async function all(pager) {
  const found = [];
  for await (const item of await pager) found.push(item);
  return found;
}

async function driveConnections() {
  const people = await connections.create({ name: "people", strategy: "auth0" });
  await connections.create({ name: "mail", strategy: "email" });
  await connections.update(people.id, { metadata: { a: "b" } });
  seen["connection"] = (await connections.get(people.id)).metadata;
  seen["connections"] = (await all(connections.list({ take: 1 }))).map((connection) => connection.name);
  seen["duplicate connection"] = await statusOf(() => connections.create({ name: "mail", strategy: "email" }));
  seen["unknown connection"] = await statusOf(() => connections.get("con_ffffffffffffffff"));
  return people.id;
}

async function driveUsers() {
  const password = "Correct-horse-7";
  const created = [];
  for (const name of ["ada", "bob", "eve"]) created.push(await users.create({ connection: "people", email: `${name}@example.test`, password }));
  seen["user ids"] = created.map((user) => user.user_id.split("|")[0]);
  seen["users"] = (await all(users.list({ per_page: 1 }))).map((user) => user.email);
  const ada = created[0].user_id;
  await users.update(ada, { user_metadata: { plan: "full" }, given_name: "Ada" });
  const user = await users.get(ada);
  seen["user"] = [user.given_name, user.user_metadata, user.identities[0].connection];
  seen["by email"] = (await users.listUsersByEmail({ email: "ADA@example.test" })).map((found) => found.user_id === ada);
  seen["duplicate user"] = await statusOf(() => users.create({ connection: "people", email: "ada@example.test", password }));
  seen["weak password"] = await statusOf(() => users.create({ connection: "people", email: "x@example.test", password: "a" }));
  return ada;
}

async function driveIdentities(ada) {
  const secondary = await users.create({ connection: "mail", email: "ada@mail.example.test", user_id: "a/b" });
  const linked = await users.identities.link(ada, { provider: "email", user_id: "a/b" });
  seen["linked"] = linked.slice(1).map((identity) => [identity.provider, identity.user_id]);
  seen["linked user"] = await statusOf(() => users.get(secondary.user_id));
  seen["unlinked"] = (await users.identities.delete(ada, "email", "a/b")).length;
  seen["restored"] = (await users.get("email|a/b")).email;
}

async function driveEventStreams() {
  const stream = await eventStreams.create({
    name: "directory",
    subscriptions: [{ event_type: "user.created" }],
    destination: { type: "action", configuration: { action_id: actionId } },
  });
  seen["stream"] = [stream.status, stream.destination.configuration.action_id === actionId];
  seen["disabled"] = (await eventStreams.update(stream.id, { status: "disabled", name: "renamed" })).status;
  seen["streams"] = (await all(eventStreams.list())).map((found) => found.name);
  await eventStreams.delete(stream.id);
  await eventStreams.delete(stream.id);
  seen["unknown stream"] = await statusOf(() => eventStreams.get(stream.id));
}

async function main() {
  const people = await driveConnections();
  const ada = await driveUsers();
  await driveIdentities(ada);
  await driveEventStreams();
  await users.delete(ada);
  await users.delete(ada);
  await connections.delete(people);
  await connections.delete(people);
  seen["left"] = (await all(users.list())).map((user) => user.email);
  console.log(JSON.stringify(seen));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
