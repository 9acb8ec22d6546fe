// Compare exchange and cluster-wide sessions.

import assert from "node:assert/strict";
import { User, countDocuments, load, range, ravendb, save, test } from "./harness.mjs";

const put = (store, key, value, index = 0) => store.operations.send(new ravendb.PutCompareExchangeValueOperation(key, value, index));
const get = (store, key) => store.operations.send(new ravendb.GetCompareExchangeValueOperation(key));
const clusterWide = (store, guards = true) =>
    store.openSession({ transactionMode: "ClusterWide", disableAtomicDocumentWritesInClusterWideTransaction: !guards });
const conflict = error => /oncurrency/.test(error.name) || /oncurrency/.test(error.message);

test("create, change and delete a value", async ({ store }) => {
    const first = await put(store, "locks/1", "Ann");
    assert.ok(first.successful);
    const taken = await put(store, "locks/1", "Bob");
    assert.deepEqual([taken.successful, taken.value, taken.index], [false, "Ann", first.index]);
    const second = await put(store, "locks/1", "Cid", first.index);
    assert.ok(second.successful && second.index > first.index);
    const stale = await store.operations.send(new ravendb.DeleteCompareExchangeValueOperation("locks/1", first.index));
    assert.equal(stale.successful, false);
    const deleted = await store.operations.send(new ravendb.DeleteCompareExchangeValueOperation("locks/1", second.index));
    assert.equal(deleted.successful, true);
    assert.ok(await get(store, "locks/1") == null);
});

for (const [title, value] of Object.entries({ number: 42, text: "é 🦜", boolean: true, list: [1, "2", null], object: { a: { b: 1 } } })) {
    test(`a value that is a ${title}`, async ({ store }) => {
        await put(store, "values/1", value);
        assert.deepEqual((await get(store, "values/1")).value, value);
    });
}

test("values by keys and by prefix", async ({ store }) => {
    for (const key of ["a/1", "b/1", "b/2", "b/3", "c/1"]) {
        await put(store, key, key);
    }
    const byKeys = await store.operations.send(new ravendb.GetCompareExchangeValuesOperation({ keys: ["a/1", "c/1", "none"] }));
    assert.equal(byKeys["a/1"].value, "a/1");
    assert.equal(byKeys["c/1"].value, "c/1");
    const byPrefix = await store.operations.send(new ravendb.GetCompareExchangeValuesOperation({ startWith: "b/", start: 1, pageSize: 10 }));
    assert.deepEqual(Object.keys(byPrefix), ["b/2", "b/3"]);
});

test("only one takes the lock", async ({ store }) => {
    const results = await Promise.all(range(12).map(n => put(store, "locks/1", `worker ${n}`)));
    assert.equal(results.filter(result => result.successful).length, 1);
});

test("a key that is too long", async ({ store }) => {
    await assert.rejects(put(store, "k".repeat(600), "never"), /CompareExchangeKeyTooBig|512/);
});

test("a document and a value in one transaction", async ({ store }) => {
    const session = clusterWide(store);
    await session.store(new User("Ann"), "users/1");
    session.advanced.clusterTransaction.createCompareExchangeValue("names/ann", "users/1");
    await session.saveChanges();
    assert.equal((await get(store, "names/ann")).value, "users/1");
    assert.equal((await load(store, "users/1")).name, "Ann");
});

test("a taken name keeps the document out", async ({ store }) => {
    await put(store, "names/ann", "users/0");
    const session = clusterWide(store);
    await session.store(new User("Ann"), "users/1");
    session.advanced.clusterTransaction.createCompareExchangeValue("names/ann", "users/1");
    await assert.rejects(session.saveChanges(), conflict);
    assert.equal(await countDocuments(store), 0);
});

test("change and delete values in a session", async ({ store }) => {
    await put(store, "k/1", { n: 1 });
    await put(store, "k/2", { n: 2 });
    const session = clusterWide(store);
    const values = await session.advanced.clusterTransaction.getCompareExchangeValues(["k/1", "k/2"]);
    values["k/1"].value = { n: 10 };
    session.advanced.clusterTransaction.deleteCompareExchangeValue(values["k/2"]);
    await session.saveChanges();
    assert.deepEqual((await get(store, "k/1")).value, { n: 10 });
    assert.ok(await get(store, "k/2") == null);
});

test("a document changed meanwhile is refused", async ({ store }) => {
    const first = clusterWide(store);
    await first.store(new User("Ann"), "users/1");
    await first.saveChanges();
    const one = clusterWide(store);
    const other = clusterWide(store);
    (await one.load("users/1", User)).name = "one";
    (await other.load("users/1", User)).name = "other";
    await one.saveChanges();
    await assert.rejects(other.saveChanges(), conflict);
    assert.equal((await load(store, "users/1")).name, "one");
});

test("without guards the last writer wins", async ({ store }) => {
    const first = clusterWide(store, false);
    await first.store(new User("Ann"), "users/1");
    await first.saveChanges();
    const one = clusterWide(store, false);
    const other = clusterWide(store, false);
    (await one.load("users/1", User)).name = "one";
    (await other.load("users/1", User)).name = "other";
    await one.saveChanges();
    await other.saveChanges();
    assert.equal((await load(store, "users/1")).name, "other");
});

test("an ordinary write between cluster-wide ones", async ({ store }) => {
    const first = clusterWide(store);
    await first.store(new User("Ann"), "users/1");
    await first.saveChanges();
    const plain = store.openSession();
    (await plain.load("users/1", User)).name = "Bea";
    await plain.saveChanges();
    const last = clusterWide(store);
    const user = await last.load("users/1", User);
    assert.equal(user.name, "Bea");
    user.name = "Cid";
    await last.saveChanges();
    assert.equal((await load(store, "users/1")).name, "Cid");
});

test("delete in a cluster-wide session", async ({ store }) => {
    const first = clusterWide(store);
    await first.store(new User("Ann"), "users/1");
    await first.saveChanges();
    const session = clusterWide(store);
    await session.delete(await session.load("users/1", User));
    await session.saveChanges();
    assert.equal(await load(store, "users/1"), null);
});

test("a value included with a document", async ({ store }) => {
    await put(store, "names/ann", "here");
    await save(store, "users/1", Object.assign(new User("Ann"), { lock: "names/ann" }));
    const session = clusterWide(store);
    await session.load("users/1", { documentType: User, includes: builder => builder.includeCompareExchangeValue("lock") });
    const requests = session.advanced.numberOfRequests;
    assert.equal((await session.advanced.clusterTransaction.getCompareExchangeValue("names/ann")).value, "here");
    assert.equal(session.advanced.numberOfRequests, requests);
});

test("unique names under contention", async ({ store }) => {
    const outcomes = await Promise.allSettled(range(10).map(async n => {
        const session = clusterWide(store);
        await session.store(new User(String(n)), `users/${n}`);
        session.advanced.clusterTransaction.createCompareExchangeValue("names/ann", `users/${n}`);
        await session.saveChanges();
        return `users/${n}`;
    }));
    const won = outcomes.filter(outcome => outcome.status === "fulfilled").map(outcome => outcome.value);
    assert.equal(won.length, 1);
    assert.equal((await get(store, "names/ann")).value, won[0]);
    assert.equal(await countDocuments(store), 1);
});
