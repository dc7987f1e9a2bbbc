// Subscribes to the event stream with the unmodified Node client, and prints one line for each message.
"use strict";

const { EventsClient } = require("auth0/events");

const [baseUrl, token] = process.argv.slice(2);

async function main() {
  const client = new EventsClient({ baseUrl, token });
  const messages = await client.subscribe({}, { timeoutInSeconds: 60, maxRetries: 0 });
  for await (const message of messages) {
    const event = message.event ?? {};
    const seen = { kind: message.type, offset: message.offset ?? null, id: event.id ?? null, purpose: event.a0purpose ?? null };
    console.log(JSON.stringify(seen));
  }
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
