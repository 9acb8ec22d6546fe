// What every case stands on: the client (its modules are in CLIENT_MODULES), a server (its address is in CLIENTS_URL), and a
// database of the case's own.

import { createRequire } from "node:module";
import net from "node:net";
import { randomUUID } from "node:crypto";
import { test as nodeTest } from "node:test";

const require = createRequire(`${process.env.CLIENT_MODULES}/`);
export const ravendb = require("ravendb");
export const url = process.env.CLIENTS_URL.replace(/\/$/, "");
// Set when the server is a real RavenDB, to prove the cases themselves.
const PEER = process.env.CLIENTS_PEER === "1";
// A hang is cut off and named; no case comes near this.
const LIMIT_MS = 120_000;

export class User {
    constructor(name, age, company) {
        this.name = name;
        this.age = age;
        this.company = company;
    }
}

export class Company {
    constructor(name) {
        this.name = name;
    }
}

export class Note {
    constructor(content) {
        this.content = content;
    }
}

export function newName() {
    return `node-${randomUUID()}`;
}

export function newStore(database, address = url, conventions = {}) {
    const store = new ravendb.DocumentStore(address, database);
    store.conventions.registerEntityType(User);
    store.conventions.registerEntityType(Company);
    store.conventions.registerEntityType(Note);
    Object.assign(store.conventions, conventions);
    return store.initialize();
}

export async function createDatabase(store, name) {
    return store.maintenance.server.send(new ravendb.CreateDatabaseOperation({ databaseName: name }));
}

export async function dropDatabase(store, name) {
    await store.maintenance.server.send(new ravendb.DeleteDatabasesOperation({ databaseNames: [name], hardDelete: true }));
}

// A case with a store of its own database: `work({ store, name, raw, context })`.
export function test(title, work) {
    nodeTest(title, { timeout: LIMIT_MS }, async context => {
        const name = newName();
        const store = newStore(name);
        await createDatabase(store, name);
        try {
            const raw = (method, path, more = {}) => fetch(`${url}/databases/${name}${path}`, { method, ...more });
            await work({ store, name, raw, context });
        } finally {
            await dropDatabase(store, name);
            store.dispose();
        }
    });
}

// A feature of a later release, refused until then; a real RavenDB has it, so it is not run against one.
export function later(title, work) {
    if (PEER) {
        nodeTest(title, { skip: "a real RavenDB has this feature" }, () => undefined);
    } else {
        test(title, work);
    }
}

export async function save(store, id, entity) {
    const session = store.openSession();
    await session.store(entity, id);
    await session.saveChanges();
}

export async function load(store, id, type = User) {
    return store.openSession().load(id, type);
}

export async function countDocuments(store) {
    return (await store.maintenance.send(new ravendb.GetStatisticsOperation())).countOfDocuments;
}

export function range(count, from = 0) {
    return Array.from({ length: count }, (_, index) => index + from);
}

// The items of a readable stream.
export async function collect(stream) {
    const items = [];
    for await (const item of stream) {
        items.push(item);
    }
    return items;
}

// A queue to which events are pushed and from which they are awaited in order.
export class Events {
    constructor() {
        this.items = [];
        this.waiting = [];
    }

    push(item) {
        const next = this.waiting.shift();
        if (next) {
            next(item);
        } else {
            this.items.push(item);
        }
    }

    next() {
        return this.items.length ? Promise.resolve(this.items.shift()) : new Promise(resolve => this.waiting.push(resolve));
    }
}

// A TCP relay before the server, which a case can cut: to the client, the server is dead at that moment.
export class Proxy {
    static async start(port = 0) {
        const proxy = new Proxy();
        const target = new URL(url);
        proxy.sockets = new Set();
        proxy.server = net.createServer(client => {
            const server = net.connect(Number(target.port), target.hostname);
            for (const socket of [client, server]) {
                proxy.sockets.add(socket);
                socket.on("error", () => undefined);
                socket.on("close", () => {
                    proxy.sockets.delete(socket);
                    client.destroy();
                    server.destroy();
                });
            }
            client.pipe(server).pipe(client);
        });
        await new Promise(resolve => proxy.server.listen(port, "127.0.0.1", resolve));
        proxy.port = proxy.server.address().port;
        proxy.url = `http://127.0.0.1:${proxy.port}`;
        return proxy;
    }

    async stop() {
        for (const socket of this.sockets) {
            socket.destroy();
        }
        await new Promise(resolve => this.server.close(resolve));
    }
}
