// Bulk insert, operations, dumps out and in.

import assert from "node:assert/strict";
import fs from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { User, countDocuments, createDatabase, dropDatabase, load, newName, newStore, range, ravendb, save, test } from "./harness.mjs";

async function insert(store, count, options) {
    const bulk = store.bulkInsert(options);
    for (const n of range(count)) {
        await bulk.store(new User(`user ${n}`, n), `users/${n}`);
    }
    await bulk.finish();
}

async function changeVectorOf(store, id) {
    const session = store.openSession();
    return session.advanced.getChangeVectorFor(await session.load(id));
}

test("a few", async ({ store }) => {
    await insert(store, 3);
    assert.equal((await load(store, "users/2")).age, 2);
    assert.equal(await countDocuments(store), 3);
});

test("twenty thousand", async ({ store }) => {
    await insert(store, 20_000);
    assert.equal(await countDocuments(store), 20_000);
    assert.equal((await load(store, "users/19999")).age, 19_999);
});

test("compressed", async ({ store }) => {
    const bulk = store.bulkInsert();
    bulk.useCompression = true;
    for (const n of range(2_000)) {
        await bulk.store(new User(`user ${n}`, n), `users/${n}`);
    }
    await bulk.finish();
    assert.equal(await countDocuments(store), 2_000);
});

test("ids by the client", async ({ store }) => {
    const bulk = store.bulkInsert();
    const users = range(40).map(n => new User(String(n)));
    for (const user of users) {
        await bulk.store(user);
    }
    await bulk.finish();
    assert.equal(users[39].id, "users/40-A");
    assert.equal((await load(store, "users/40-A")).name, "39");
});

test("metadata is kept", async ({ store }) => {
    const bulk = store.bulkInsert();
    await bulk.store(new User("Ann"), "people/1", { "@collection": "People", Department: "Birds" });
    await bulk.finish();
    const session = store.openSession();
    const found = session.advanced.getMetadataFor(await session.load("people/1"));
    assert.deepEqual([found["@collection"], found["Department"]], ["People", "Birds"]);
});

test("none at all", async ({ store }) => {
    await store.bulkInsert().finish();
    assert.equal(await countDocuments(store), 0);
});

test("unchanged documents are skipped on request", async ({ store }) => {
    await insert(store, 1);
    const first = await changeVectorOf(store, "users/0");
    await insert(store, 1, { skipOverwriteIfUnchanged: true });
    assert.equal(await changeVectorOf(store, "users/0"), first);
    await insert(store, 1);
    assert.notEqual(await changeVectorOf(store, "users/0"), first);
});

test("abort", async ({ store }) => {
    const bulk = store.bulkInsert();
    await bulk.store(new User("Ann"), "users/1");
    await bulk.abort();
    await assert.rejects(bulk.finish());
    assert.equal(await load(store, "users/1"), null);
});

test("several at once", async ({ store }) => {
    await Promise.all(range(4).map(async number => {
        const bulk = store.bulkInsert();
        for (const n of range(500)) {
            await bulk.store(new User(String(n)), `users/${number}/${n}`);
        }
        await bulk.finish();
    }));
    assert.equal(await countDocuments(store), 2_000);
});

test("an id that ends with a pipe is refused", async ({ store }) => {
    const bulk = store.bulkInsert();
    await assert.rejects(async () => {
        await bulk.store(new User("Ann"), "users|");
        await bulk.finish();
    });
});

test("the state of an unknown operation", async ({ store }) => {
    assert.ok(await store.maintenance.send(new ravendb.GetOperationStateOperation(987_654_321)) == null);
});

async function withFolder(work) {
    const folder = await fs.mkdtemp(path.join(os.tmpdir(), "jackdaw-clients-"));
    try {
        await work(folder);
    } finally {
        await fs.rm(folder, { recursive: true });
    }
}

async function fill(store) {
    await insert(store, 100);
    await save(store, "notes/é 🦜", Object.assign(new User("odd"), { nested: { a: [1.5, null, "x"] } }));
    await store.maintenance.send(new ravendb.SeedIdentityForOperation("orders", 42));
    await store.operations.send(new ravendb.PutCompareExchangeValueOperation("names/ann", "users/1", 0));
}

async function elsewhere(store, work) {
    const name = newName();
    await createDatabase(store, name);
    const other = newStore(name);
    try {
        await work(other, name);
    } finally {
        await dropDatabase(store, name);
        other.dispose();
    }
}

test("export to a file and import", async ({ store }) => {
    await withFolder(async folder => {
        await fill(store);
        const file = path.join(folder, "all.ravendbdump");
        await (await store.smuggler.export(new ravendb.DatabaseSmugglerExportOptions(), file)).waitForCompletion();
        assert.ok((await fs.stat(file)).size > 100);
        await elsewhere(store, async other => {
            await (await other.smuggler.import(new ravendb.DatabaseSmugglerImportOptions(), file)).waitForCompletion();
            assert.equal(await countDocuments(other), 101);
            assert.equal((await load(other, "users/77")).age, 77);
            assert.deepEqual((await load(other, "notes/é 🦜")).nested, { a: [1.5, null, "x"] });
            assert.equal(await other.maintenance.send(new ravendb.NextIdentityForOperation("orders")), 43);
            assert.equal((await other.operations.send(new ravendb.GetCompareExchangeValueOperation("names/ann"))).value, "users/1");
        });
    });
});

test("export of one collection", async ({ store }) => {
    await withFolder(async folder => {
        await fill(store);
        await save(store, "companies/1", { name: "Acme", "@metadata": { "@collection": "Companies" } });
        const file = path.join(folder, "some.ravendbdump");
        const options = new ravendb.DatabaseSmugglerExportOptions();
        options.collections = ["Companies"];
        await (await store.smuggler.export(options, file)).waitForCompletion();
        await elsewhere(store, async other => {
            await (await other.smuggler.import(new ravendb.DatabaseSmugglerImportOptions(), file)).waitForCompletion();
            assert.equal(await countDocuments(other), 1);
        });
    });
});

test("import overwrites by id", async ({ store }) => {
    await withFolder(async folder => {
        await save(store, "users/1", new User("exported"));
        const file = path.join(folder, "x.ravendbdump");
        await (await store.smuggler.export(new ravendb.DatabaseSmugglerExportOptions(), file)).waitForCompletion();
        await save(store, "users/1", new User("changed"));
        await save(store, "users/2", new User("kept"));
        await (await store.smuggler.import(new ravendb.DatabaseSmugglerImportOptions(), file)).waitForCompletion();
        assert.equal((await load(store, "users/1")).name, "exported");
        assert.equal((await load(store, "users/2")).name, "kept");
    });
});

test("import of a file that is no dump", async ({ store }) => {
    await withFolder(async folder => {
        const file = path.join(folder, "x.ravendbdump");
        await fs.writeFile(file, "this is no dump at all");
        await assert.rejects(async () => (await store.smuggler.import(new ravendb.DatabaseSmugglerImportOptions(), file)).waitForCompletion());
        assert.equal(await countDocuments(store), 0);
    });
});

test("indexes go with a dump", async ({ store }) => {
    await withFolder(async folder => {
        await fill(store);
        const users = "from u in docs.Users select new { u.name, u.age }";
        const fields = { name: Object.assign(new ravendb.IndexFieldOptions(), { indexing: "Search", analyzer: "WhitespaceAnalyzer" }) };
        const byName = Object.assign(new ravendb.IndexDefinition(), { name: "Users/ByName", maps: new Set([users]), fields, priority: "High" });
        const script = Object.assign(new ravendb.IndexDefinition(), { name: "Users/Script", maps: new Set(["map('Users', u => ({ age: u.age }))"]) });
        await store.maintenance.send(new ravendb.PutIndexesOperation(byName, script));
        const file = path.join(folder, "all.ravendbdump");
        await (await store.smuggler.export(new ravendb.DatabaseSmugglerExportOptions(), file)).waitForCompletion();
        const definitions = async of => (await of.maintenance.send(new ravendb.GetIndexesOperation(0, 10))).map(({ name, maps, fields, priority }) => ({ name, maps: [...maps], analyzer: fields?.name?.analyzer, priority }));
        await elsewhere(store, async other => {
            await (await other.smuggler.import(new ravendb.DatabaseSmugglerImportOptions(), file)).waitForCompletion();
            assert.deepEqual(await definitions(other), await definitions(store));
            const session = other.openSession();
            const [found] = await session.advanced.rawQuery("from index 'Users/ByName' where search(name, '77')").waitForNonStaleResults().all();
            assert.equal(found.age, 77);
        });
        const options = new ravendb.DatabaseSmugglerImportOptions();
        options.operateOnTypes = ["Documents"];
        await elsewhere(store, async other => {
            await (await other.smuggler.import(options, file)).waitForCompletion();
            assert.deepEqual(await definitions(other), []);
        });
    });
});
