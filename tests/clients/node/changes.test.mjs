// The changes API, failures, and features of later releases.

import assert from "node:assert/strict";
import { Company, Events, Proxy, User, countDocuments, later, load, newStore, range, ravendb, save, test } from "./harness.mjs";

async function watch(observable) {
    const events = new Events();
    observable.on("data", event => events.push(event));
    await observable.ensureSubscribedNow?.();
    return events;
}

async function connected(store) {
    const changes = store.changes();
    await changes.ensureConnectedNow();
    return changes;
}

test("changes of one document", async ({ store }) => {
    const changes = await connected(store);
    const seen = await watch(changes.forDocument("users/1"));
    // The confirmation of the watch has come when that of a later command has.
    await save(store, "users/2", new User("other"));
    await save(store, "users/1", new User("Ann"));
    const event = await seen.next();
    assert.deepEqual([event.id, event.type, event.collectionName], ["users/1", "Put", "Users"]);
    assert.match(event.changeVector, /^A:/);
    const session = store.openSession();
    await session.delete("users/1");
    await session.saveChanges();
    assert.deepEqual((({ id, type }) => [id, type])(await seen.next()), ["users/1", "Delete"]);
    changes.dispose();
});

test("changes of all documents come in order", async ({ store }) => {
    const changes = await connected(store);
    const seen = await watch(changes.forAllDocuments());
    for (const n of range(20)) {
        await save(store, `users/${n}`, new User(String(n)));
    }
    for (const n of range(20)) {
        assert.equal((await seen.next()).id, `users/${n}`);
    }
    changes.dispose();
});

test("changes of a prefix and of a collection", async ({ store }) => {
    const changes = await connected(store);
    const prefix = await watch(changes.forDocumentsStartingWith("users/"));
    const collection = await watch(changes.forDocumentsInCollection("Companies"));
    await save(store, "any/1", new Company("Acme"));
    await save(store, "users/1", new User("Ann"));
    assert.equal((await prefix.next()).id, "users/1");
    assert.equal((await collection.next()).id, "any/1");
    changes.dispose();
});

test("changes of operations", async ({ store }) => {
    const changes = await connected(store);
    const seen = await watch(changes.forAllOperations());
    const bulk = store.bulkInsert();
    await bulk.store(new User("Ann"), "users/1");
    await bulk.finish();
    let event;
    do {
        event = await seen.next();
    } while (event.state.status === "InProgress");
    assert.equal(event.state.status, "Completed");
    changes.dispose();
});

test("what is notified is readable", async ({ store }) => {
    const changes = await connected(store);
    const seen = await watch(changes.forAllDocuments());
    const writing = (async () => {
        for (const n of range(30)) {
            await save(store, `users/${n}`, new User(String(n)));
        }
    })();
    for (const _ of range(30)) {
        assert.ok(await load(store, (await seen.next()).id));
    }
    await writing;
    changes.dispose();
});

test("a hundred feeds", async ({ store, name }) => {
    const stores = range(100).map(() => newStore(name));
    const all = await Promise.all(stores.map(async one => {
        const changes = one.changes();
        await changes.ensureConnectedNow();
        return { changes, seen: await watch(changes.forAllDocuments()) };
    }));
    await save(store, "users/1", new User("Ann"));
    for (const { changes, seen } of all) {
        assert.equal((await seen.next()).id, "users/1");
        changes.dispose();
    }
    stores.forEach(one => one.dispose());
});

test("a server that dies and comes back", async ({ store, name }) => {
    const proxy = await Proxy.start();
    const through = newStore(name, proxy.url, { disableTopologyUpdates: true });
    await save(through, "users/1", new User("before"));
    await proxy.stop();
    await assert.rejects(save(through, "users/2", new User("during")));
    through.dispose();
    const back = await Proxy.start(proxy.port);
    const again = newStore(name, back.url, { disableTopologyUpdates: true });
    assert.equal((await load(again, "users/1")).name, "before");
    await save(again, "users/3", new User("after"));
    again.dispose();
    await back.stop();
    assert.equal(await load(store, "users/2"), null);
    assert.equal((await load(store, "users/3")).name, "after");
});

const refused = error => /not ?supported/i.test(`${error.name} ${error.message}`);

async function unchanged(store, work) {
    await save(store, "users/1", new User("Ann", 30));
    await assert.rejects(work, refused);
    const session = store.openSession();
    const user = await session.load("users/1", User);
    assert.deepEqual([user.name, user.age], ["Ann", 30]);
    assert.equal(await countDocuments(store), 1);
}

later("a counter is refused", async ({ store }) => {
    await unchanged(store, async () => {
        const session = store.openSession();
        session.countersFor("users/1").increment("likes", 1);
        await session.saveChanges();
    });
});

later("an attachment is refused", async ({ store }) => {
    await unchanged(store, async () => {
        const session = store.openSession();
        session.advanced.attachments.store("users/1", "a.txt", Buffer.from("text"), "text/plain");
        await session.saveChanges();
    });
});

later("a time series is refused", async ({ store }) => {
    await unchanged(store, async () => {
        const session = store.openSession();
        session.timeSeriesFor("users/1", "heart rate").append(new Date(), 60);
        await session.saveChanges();
    });
});

later("a revisions configuration is refused", async ({ store }) => {
    await unchanged(store, () => store.maintenance.send(new ravendb.ConfigureRevisionsOperation(new ravendb.RevisionsConfiguration())));
});

later("a subscription is refused", async ({ store }) => {
    await unchanged(store, () => store.subscriptions.create({ query: "from Users" }));
});
