// A SCIM server built with unmodified SCIMMY: this file sets up its storage, its token and its port.
// Run as `node scimmy_server.js PORT`. The environment variable SCIM_TOKEN contains the bearer token.
"use strict";

const { randomUUID } = require("node:crypto");
// Use Express 4. In Express 5, each read of `request.query` creates a new object. So the numbers that SCIMMY writes into this object would
// be lost, and SCIMMY would always return the first page.
const express = require("express");
const SCIMMY = require("scimmy").default;
const { SCIMMYRouters } = require("scimmy-routers");

const users = new Map();
const refusal = (status, type, detail) => new SCIMMY.Types.Error(status, type, detail);

function stored(id) {
  if (!users.has(id)) throw refusal(404, null, "Resource not found");
  return users.get(id);
}

function store(resource, instance) {
  const id = resource.id ?? randomUUID();
  const created = resource.id ? stored(id).meta.created : new Date().toISOString();
  const name = instance.userName?.toLowerCase();
  for (const [other, user] of users) {
    if (other !== id && user.userName?.toLowerCase() === name) throw refusal(409, "uniqueness", "userName is taken");
  }
  const meta = { created, lastModified: new Date().toISOString() };
  users.set(id, { ...JSON.parse(JSON.stringify(instance)), id, meta });
  return users.get(id);
}

function found(resource) {
  if (resource.id) return stored(resource.id);
  const all = [...users.values()];
  return resource.filter ? resource.filter.match(all) : all;
}

SCIMMY.Resources.declare(SCIMMY.Resources.User)
  .extend(SCIMMY.Schemas.EnterpriseUser, false)
  .ingress(store)
  .egress(found)
  .degress((resource) => {
    stored(resource.id);
    users.delete(resource.id);
  });

function holder(request) {
  if (request.header("Authorization") !== `Bearer ${process.env.SCIM_TOKEN}`) throw new Error("unknown token");
  return "client";
}

const application = express();
application.use("/scim/v2", new SCIMMYRouters({ type: "bearer", handler: holder }));
application.listen(Number(process.argv[2]), "127.0.0.1");
