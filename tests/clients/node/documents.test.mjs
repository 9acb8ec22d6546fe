// Sessions: store, load, change, delete, metadata, concurrency, includes, prefixes, lazy operations, streams, caching.

import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { Company, Note, User, collect, countDocuments, load, newStore, range, ravendb, save, test } from "./harness.mjs";

const conflict = error => error.name === "ConcurrencyException";

test("store and load", async ({ store }) => {
    await save(store, "users/1", new User("Ann", 30));
    const user = await load(store, "users/1");
    assert.ok(user instanceof User);
    assert.deepEqual([user.name, user.age, user.id], ["Ann", 30, "users/1"]);
});

test("a missing document is null", async ({ store }) => {
    assert.equal(await load(store, "users/none"), null);
});

test("a loaded document is loaded once", async ({ store }) => {
    await save(store, "users/1", new User("Ann"));
    const session = store.openSession();
    assert.equal(await session.load("users/1"), await session.load("users/1"));
    assert.equal(session.advanced.numberOfRequests, 1);
});

test("change and delete in one save", async ({ store }) => {
    await save(store, "users/1", new User("Ann"));
    await save(store, "users/2", new User("Bob"));
    const session = store.openSession();
    (await session.load("users/1")).name = "Anna";
    await session.delete("users/2");
    await session.store(new User("Cid"), "users/3");
    const before = session.advanced.numberOfRequests;
    await session.saveChanges();
    assert.equal(session.advanced.numberOfRequests, before + 1);
    const found = await store.openSession().load(["users/1", "users/2", "users/3"], User);
    assert.deepEqual([found["users/1"].name, found["users/2"], found["users/3"].name], ["Anna", null, "Cid"]);
});

test("delete of a missing document is no error", async ({ store }) => {
    const session = store.openSession();
    await session.delete("users/none");
    await session.saveChanges();
});

const VALUES = {
    null: null, true: true, "empty text": "", zero: 0, negative: -1, "largest safe integer": Number.MAX_SAFE_INTEGER, fraction: 1.5,
    "very large": 1e300, "very small": 1e-300, "empty list": [], "empty object": {}, nested: { a: { b: [1, "2", null, { c: [] }] } },
    latin: "é ü ß", chinese: "中文字符", emoji: "🦜🐦", quotes: "\"quoted\" \\ back", "white space": "line\nbreak\ttab\r\n",
    control: "\u0000\u0001\u001f", separators: "\u2028\u2029", "odd names": { "a.b": 1, "$x": 2, "": 3 }, "a long text": "x".repeat(200_000),
};
for (const [title, value] of Object.entries(VALUES)) {
    test(`a value comes back: ${title}`, async ({ store }) => {
        await save(store, "notes/1", new Note(value));
        assert.deepEqual((await load(store, "notes/1", Note)).content, value);
    });
}

test("dates come back as dates", async ({ store }) => {
    const date = new Date(Date.UTC(2026, 10, 21, 9, 14, 50, 942));
    await save(store, "notes/1", new Note(date));
    assert.deepEqual((await load(store, "notes/1", Note)).content, date);
});

test("a deep document", async ({ store }) => {
    let value = "bottom";
    for (const _ of range(30)) {
        value = { inner: [value] };
    }
    await save(store, "notes/1", new Note(value));
    assert.deepEqual((await load(store, "notes/1", Note)).content, value);
});

test("a big document", async ({ store }) => {
    const value = range(20_000).map(n => `${n} ${"lorem ipsum ".repeat(8)}`);
    await save(store, "notes/1", new Note(value));
    assert.deepEqual((await load(store, "notes/1", Note)).content, value);
});

test("properties keep their order", async ({ store, raw }) => {
    await save(store, "notes/1", new Note({ z: 1, a: 2, m: 3, B: 4 }));
    const text = await (await raw("GET", "/docs?id=notes/1")).text();
    assert.match(text, /"z":1,"a":2,"m":3,"B":4/);
});

test("metadata of the application", async ({ store }) => {
    const session = store.openSession();
    const user = new User("Ann");
    await session.store(user, "users/1");
    session.advanced.getMetadataFor(user)["Department"] = "Birds";
    await session.saveChanges();
    const other = store.openSession();
    const metadata = other.advanced.getMetadataFor(await other.load("users/1"));
    assert.deepEqual([metadata["Department"], metadata["@collection"], metadata["Raven-Node-Type"]], ["Birds", "Users", "User"]);
});

test("change vectors grow", async ({ store }) => {
    const session = store.openSession();
    const user = new User("Ann");
    await session.store(user, "users/1");
    await session.saveChanges();
    const first = session.advanced.getChangeVectorFor(user);
    user.name = "Bea";
    await session.saveChanges();
    const second = session.advanced.getChangeVectorFor(user);
    assert.match(first, /^A:\d+-.{22}$/);
    assert.notEqual(first, second);
    assert.ok(session.advanced.getLastModifiedFor(user));
});

test("exists", async ({ store }) => {
    await save(store, "users/1", new User("Ann"));
    const session = store.openSession();
    assert.equal(await session.advanced.exists("users/1"), true);
    assert.equal(await session.advanced.exists("users/2"), false);
});

test("refresh", async ({ store }) => {
    await save(store, "users/1", new User("Ann"));
    const session = store.openSession();
    const user = await session.load("users/1", User);
    await save(store, "users/1", new User("Bea"));
    await session.advanced.refresh(user);
    assert.equal(user.name, "Bea");
});

test("another collection under the same id is refused", async ({ store }) => {
    await save(store, "things/1", new User("Ann"));
    await assert.rejects(save(store, "things/1", new Company("Acme")));
    assert.equal((await load(store, "things/1")).name, "Ann");
});

test("commands outside sessions", async ({ store }) => {
    const executor = store.getRequestExecutor();
    const put = new ravendb.PutDocumentCommand("users/1", null, { name: "Ann", "@metadata": { "@collection": "Users" } });
    await executor.execute(put);
    assert.equal(put.result.id, "users/1");
    assert.equal((await load(store, "users/1")).name, "Ann");
    await executor.execute(new ravendb.DeleteDocumentCommand("users/1"));
    assert.equal(await load(store, "users/1"), null);
});

test("an id by the server", async ({ store }) => {
    const session = store.openSession();
    const user = new User("Ann");
    await session.store(user, "users/");
    await session.saveChanges();
    assert.match(session.advanced.getDocumentId(user), /^users\/\d{19}-A$/);
});

test("an id from an identity", async ({ store }) => {
    for (const n of [1, 2]) {
        const session = store.openSession();
        const user = new User("Ann");
        await session.store(user, "users|");
        await session.saveChanges();
        assert.equal(session.advanced.getDocumentId(user), `users/${n}`);
    }
});

test("ids are given in order", async ({ store }) => {
    const session = store.openSession();
    const users = range(40).map(n => new User(String(n)));
    for (const user of users) {
        await session.store(user);
    }
    await session.saveChanges();
    assert.deepEqual(users.map(user => user.id), range(40, 1).map(n => `users/${n}-A`));
});

test("no id is given twice", async ({ name }) => {
    const stores = range(6).map(() => newStore(name));
    const given = (await Promise.all(stores.map(async store => {
        const session = store.openSession();
        const users = range(50).map(n => new User(String(n)));
        for (const user of users) {
            await session.store(user);
        }
        await session.saveChanges();
        return users.map(user => user.id);
    }))).flat();
    assert.equal(new Set(given).size, 300);
    stores.forEach(store => store.dispose());
});

test("a given range is returned when the store is disposed", async ({ store, name }) => {
    const other = newStore(name);
    const session = other.openSession();
    await session.store(new User("Ann"));
    await session.saveChanges();
    const closed = new Promise(resolve => other.once("executorsDisposed", resolve));
    other.dispose();
    await closed;
    assert.equal((await load(store, "Raven/Hilo/users", Object)).Max, 1);
});

for (const [title, id] of Object.entries({
    spaces: "users/with some spaces", "query signs": "users/a?b=c&d#e+f", percent: "users/100%25", quotes: "users/'\"", unicode: "users/é/中文/🦜",
    dots: "../../users", backslash: "users\\back", markup: "<b>users</b>",
})) {
    test(`a hard id: ${title}`, async ({ store }) => {
        await save(store, id, new User("Ann"));
        const session = store.openSession();
        const user = await session.load(id, User);
        assert.equal(session.advanced.getDocumentId(user), id);
        user.name = "Bea";
        await session.saveChanges();
        assert.equal((await load(store, id)).name, "Bea");
    });
}

test("the second writer fails with optimistic concurrency", async ({ store }) => {
    await save(store, "users/1", new User("Ann"));
    const one = store.openSession();
    const other = store.openSession();
    other.advanced.useOptimisticConcurrency = true;
    (await one.load("users/1")).name = "one";
    (await other.load("users/1")).name = "other";
    await one.saveChanges();
    await assert.rejects(other.saveChanges(), conflict);
    assert.equal((await load(store, "users/1")).name, "one");
});

test("what must be new", async ({ store }) => {
    await save(store, "users/1", new User("Ann"));
    const session = store.openSession();
    await session.store(new User("a"), "users/0");
    await session.store(new User("never"), "users/1", { changeVector: "" });
    await assert.rejects(session.saveChanges(), conflict);
    assert.equal(await countDocuments(store), 1);
});

test("a conflict tells both change vectors", async ({ store }) => {
    await save(store, "users/1", new User("Ann"));
    const session = store.openSession();
    const user = await session.load("users/1", User);
    const stale = session.advanced.getChangeVectorFor(user);
    await save(store, "users/1", new User("Bea"));
    session.advanced.useOptimisticConcurrency = true;
    user.name = "never";
    await assert.rejects(session.saveChanges(), error => {
        assert.match(error.message, new RegExp(stale.replace(/[+]/g, "\\+")));
        return conflict(error);
    });
});

test("a counter kept by retries", async ({ store }) => {
    await save(store, "users/1", new User("counter", 0));
    await Promise.all(range(8).map(async () => {
        for (let done = 0; done < 5;) {
            const session = store.openSession();
            session.advanced.useOptimisticConcurrency = true;
            (await session.load("users/1")).age += 1;
            try {
                await session.saveChanges();
                done += 1;
            } catch (error) {
                assert.ok(conflict(error), error);
            }
        }
    }));
    assert.equal((await load(store, "users/1")).age, 40);
});

test("two hundred saves at once", async ({ store }) => {
    await Promise.all(range(200).map(n => save(store, `users/${n}`, new User(String(n), n))));
    assert.equal(await countDocuments(store), 200);
});

async function shop(store) {
    const session = store.openSession();
    await session.store(new Company("Acme"), "companies/1");
    await session.store(new Company("Zeta"), "companies/2");
    for (const n of range(12, 1)) {
        await session.store(new User(`user ${n}`, n, `companies/${1 + n % 2}`), `users/${n}`);
    }
    await session.store(Object.assign(new Note(), { refs: ["companies/1", "companies/2"], lines: [{ product: "companies/2" }] }), "notes/1");
    await session.saveChanges();
}

test("load many, some missing", async ({ store }) => {
    await shop(store);
    const session = store.openSession();
    const users = await session.load(["users/3", "users/none", "users/1"], User);
    assert.deepEqual([users["users/3"].name, users["users/none"], users["users/1"].name], ["user 3", null, "user 1"]);
    assert.equal(session.advanced.numberOfRequests, 1);
});

test("so many ids that they go into the body", async ({ store }) => {
    const ids = range(200).map(n => `users/with-a-rather-long-id-${n}`);
    const session = store.openSession();
    for (const id of ids) {
        await session.store(new User(id), id);
    }
    await session.saveChanges();
    const users = await store.openSession().load(ids, User);
    assert.deepEqual(ids.map(id => users[id].name), ids);
});

test("an include", async ({ store }) => {
    await shop(store);
    const session = store.openSession();
    const user = await session.include("company").load("users/1", User);
    assert.equal((await session.load(user.company, Company)).name, "Zeta");
    assert.equal(session.advanced.numberOfRequests, 1);
});

test("includes from lists", async ({ store }) => {
    await shop(store);
    for (const path of ["refs", "refs[]", "lines[].product"]) {
        const session = store.openSession();
        await session.include(path).load("notes/1", Note);
        assert.equal((await session.load("companies/2", Company)).name, "Zeta");
        assert.equal(session.advanced.numberOfRequests, 1, path);
    }
});

test("an include by a builder", async ({ store }) => {
    await shop(store);
    const session = store.openSession();
    const user = await session.load("users/2", { documentType: User, includes: builder => builder.includeDocuments("company") });
    assert.equal((await session.load(user.company, Company)).name, "Acme");
    assert.equal(session.advanced.numberOfRequests, 1);
});

for (const [title, options, expected] of [
    ["a page", { start: 1, pageSize: 2 }, ["users/10", "users/11"]],
    ["matches", { matches: "1*" }, ["users/1", "users/10", "users/11", "users/12"]],
    ["several matches", { matches: "3|5|none" }, ["users/3", "users/5"]],
    ["exclude", { exclude: "1*|2|3|4|5|6|7" }, ["users/8", "users/9"]],
    ["after an id", { startAfter: "users/7" }, ["users/8", "users/9"]],
    ["nothing", { matches: "none" }, []],
]) {
    test(`by prefix: ${title}`, async ({ store }) => {
        await shop(store);
        const users = await store.openSession().advanced.loadStartingWith("users/", { documentType: User, ...options });
        assert.deepEqual(users.map(user => user.id), expected);
    });
}

test("by prefix into a stream", async ({ store }) => {
    await shop(store);
    const target = new PassThrough();
    const text = collect(target);
    await store.openSession().advanced.loadStartingWithIntoStream("users/1", target);
    target.end();
    assert.equal(Buffer.concat(await text).toString().match(/"user 1\d?"/g).length, 4);
});

test("lazy operations are one request", async ({ store }) => {
    await shop(store);
    const session = store.openSession();
    const one = session.advanced.lazily.load("users/1", User);
    const many = session.advanced.lazily.load(["users/2", "users/none"], User);
    const prefix = session.advanced.lazily.loadStartingWith("companies/", { documentType: Company });
    await session.advanced.eagerly.executeAllPendingLazyOperations();
    assert.equal(session.advanced.numberOfRequests, 1);
    assert.equal((await one.getValue()).name, "user 1");
    assert.equal((await many.getValue())["users/2"].name, "user 2");
    assert.deepEqual(Object.keys(await prefix.getValue()).sort(), ["companies/1", "companies/2"]);
    assert.equal(session.advanced.numberOfRequests, 1);
});

test("a lazy load of a missing document", async ({ store }) => {
    await shop(store);
    const session = store.openSession();
    const missing = session.advanced.lazily.load("users/none", User);
    const there = session.advanced.lazily.load("users/1", User);
    assert.equal(await missing.getValue(), null);
    assert.equal((await there.getValue()).name, "user 1");
});

test("a lazy include", async ({ store }) => {
    await shop(store);
    const session = store.openSession();
    const lazy = session.advanced.lazily.include("company").load("users/1", User);
    const value = await lazy.getValue();
    const user = value.company ? value : value["users/1"];
    assert.equal((await session.load(user.company, Company)).name, "Zeta");
    assert.equal(session.advanced.numberOfRequests, 1);
});

test("a conditional load", async ({ store }) => {
    await shop(store);
    const first = store.openSession();
    const changeVector = first.advanced.getChangeVectorFor(await first.load("users/1", User));
    const same = await store.openSession().advanced.conditionalLoad("users/1", changeVector, User);
    assert.equal(same.entity, null);
    assert.equal(same.changeVector, changeVector);
    await save(store, "users/1", new User("changed"));
    const changed = await store.openSession().advanced.conditionalLoad("users/1", changeVector, User);
    assert.equal(changed.entity.name, "changed");
    assert.notEqual(changed.changeVector, changeVector);
    const missing = await store.openSession().advanced.conditionalLoad("users/none", changeVector, User);
    assert.deepEqual([missing.entity, missing.changeVector], [null, null]);
});

test("what has not changed is not sent again", async ({ store }) => {
    const statuses = [];
    await save(store, "users/1", new User("Ann"));
    await save(store, "users/2", new User("Bob"));
    store.getRequestExecutor().on("succeedRequest", event => statuses.push(event.response.status));
    for (const _ of range(2)) {
        await load(store, "users/1");
        await store.openSession().load(["users/1", "users/2"], User);
    }
    await save(store, "users/2", new User("Bert"));
    const users = await store.openSession().load(["users/1", "users/2"], User);
    assert.equal(users["users/2"].name, "Bert");
    assert.deepEqual(statuses.filter(status => status !== 201), [200, 200, 304, 304, 200]);
});

test("streams of documents", async ({ store }) => {
    const bulk = store.bulkInsert();
    for (const n of range(500)) {
        await bulk.store(new User(String(n), n), `users/${String(n).padStart(3, "0")}`);
    }
    await bulk.finish();
    const items = await collect(await store.openSession().advanced.stream("users/"));
    assert.equal(items.length, 500);
    assert.deepEqual([items[7].id, items[7].document.age], ["users/007", 7]);
    assert.match(items[7].changeVector, /^A:/);
});

test("a stream with options", async ({ store }) => {
    await shop(store);
    const items = await collect(await store.openSession().advanced.stream("users/", { matches: "1*", start: 1, pageSize: 2 }));
    assert.deepEqual(items.map(item => item.id), ["users/10", "users/11"]);
});

test("a stream of nothing", async ({ store }) => {
    assert.deepEqual(await collect(await store.openSession().advanced.stream("nothing/")), []);
});

test("identities", async ({ store }) => {
    assert.equal(await store.maintenance.send(new ravendb.NextIdentityForOperation("orders")), 1);
    assert.equal(await store.maintenance.send(new ravendb.SeedIdentityForOperation("orders", 100)), 100);
    assert.equal(await store.maintenance.send(new ravendb.NextIdentityForOperation("orders")), 101);
    assert.equal(await store.maintenance.send(new ravendb.SeedIdentityForOperation("orders", 5)), 101);
    assert.equal(await store.maintenance.send(new ravendb.SeedIdentityForOperation("orders", 5, true)), 5);
    assert.deepEqual(await store.maintenance.send(new ravendb.GetIdentitiesOperation()), { "orders|": 5 });
});
