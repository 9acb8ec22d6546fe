// Databases, their records and states; statistics; topology.

import assert from "node:assert/strict";
import { Company, User, countDocuments, createDatabase, dropDatabase, load, newName, newStore, range, ravendb, save, test, url } from "./harness.mjs";

const names = store => store.maintenance.server.send(new ravendb.GetDatabaseNamesOperation(0, 10_000));

test("a created database is listed", async ({ store, name }) => {
    assert.ok((await names(store)).includes(name));
});

test("the record of a database", async ({ store, name }) => {
    const record = await store.maintenance.server.send(new ravendb.GetDatabaseRecordOperation(name));
    assert.equal(record.databaseName, name);
    assert.equal(record.disabled, false);
});

test("a missing database has no record", async ({ store }) => {
    assert.ok(await store.maintenance.server.send(new ravendb.GetDatabaseRecordOperation(newName())) == null);
});

test("creating twice is refused and keeps the data", async ({ store, name }) => {
    await save(store, "users/1", new User("Ann"));
    await assert.rejects(createDatabase(store, name), /already exists/);
    assert.equal((await load(store, "users/1")).name, "Ann");
});

test("a deleted database is gone and its name is free", async ({ store }) => {
    const name = newName();
    for (const _ of range(2)) {
        await createDatabase(store, name);
        const other = newStore(name);
        assert.equal(await load(other, "users/1"), null);
        await save(other, "users/1", new User("Ann"));
        other.dispose();
        await dropDatabase(store, name);
        assert.ok(!(await names(store)).includes(name));
    }
});

test("disable and enable", async ({ store, name }) => {
    await save(store, "users/1", new User("Ann"));
    const disabled = await store.maintenance.server.send(new ravendb.ToggleDatabasesStateOperation(name, true));
    assert.equal(disabled.disabled, true);
    const other = newStore(name);
    await assert.rejects(load(other, "users/1"), error => /disabled/i.test(error.message) || error.name === "DatabaseDisabledException");
    other.dispose();
    const enabled = await store.maintenance.server.send(new ravendb.ToggleDatabasesStateOperation(name, false));
    assert.equal(enabled.disabled, false);
    const again = newStore(name);
    assert.equal((await load(again, "users/1")).name, "Ann");
    again.dispose();
});

test("a locked database is not deleted", async ({ store, name }) => {
    const lock = mode => store.maintenance.server.send(new ravendb.SetDatabasesLockOperation(name, mode));
    await lock("PreventDeletesError");
    await assert.rejects(dropDatabase(store, name), /PreventDeletesError/);
    await lock("PreventDeletesIgnore");
    await dropDatabase(store, name);
    assert.ok((await names(store)).includes(name));
    await lock("Unlock");
});

test("the build number", async ({ store }) => {
    const build = await store.maintenance.server.send(new ravendb.GetBuildNumberOperation());
    assert.ok(build.buildVersion > 0);
    assert.ok(build.productVersion);
});

test("statistics", async ({ store }) => {
    await save(store, "users/1", new User("Ann"));
    await save(store, "users/2", new User("Bob"));
    const session = store.openSession();
    await session.delete("users/2");
    await session.saveChanges();
    const statistics = await store.maintenance.send(new ravendb.GetStatisticsOperation());
    assert.equal(statistics.countOfDocuments, 1);
    assert.equal(statistics.countOfTombstones, 1);
    assert.equal(statistics.countOfIndexes, 0);
    assert.ok(statistics.lastDocEtag > 0);
    assert.deepEqual(statistics.indexes, []);
});

test("detailed statistics", async ({ store }) => {
    await save(store, "users/1", new User("Ann"));
    await store.maintenance.send(new ravendb.NextIdentityForOperation("users"));
    const statistics = await store.maintenance.send(new ravendb.GetDetailedStatisticsOperation());
    assert.equal(statistics.countOfDocuments, 1);
    assert.equal(statistics.countOfIdentities, 1);
    assert.equal(statistics.countOfCompareExchange, 0);
});

test("statistics of collections", async ({ store }) => {
    await save(store, "users/1", new User("Ann"));
    await save(store, "companies/1", new Company("Acme"));
    const statistics = await store.maintenance.send(new ravendb.GetCollectionStatisticsOperation());
    assert.equal(statistics.countOfDocuments, 2);
    assert.equal(statistics.collections.Users, 1);
    assert.equal(statistics.collections.Companies, 1);
});

test("detailed statistics of collections", async ({ store }) => {
    await save(store, "users/1", new User("Ann"));
    const statistics = await store.maintenance.send(new ravendb.GetDetailedCollectionStatisticsOperation());
    const [users] = Object.values(statistics.collections);
    assert.deepEqual([users.name, users.countOfDocuments], ["Users", 1]);
    assert.ok(users.size.sizeInBytes > 0);
});

test("settings of a database", async ({ store, name }) => {
    await store.maintenance.send(new ravendb.PutDatabaseSettingsOperation(name, { "Indexing.MapBatchSize": "100" }));
    const { settings } = await store.maintenance.send(new ravendb.GetDatabaseSettingsOperation(name));
    assert.equal(settings["Indexing.MapBatchSize"], "100");
});

test("client configuration", async ({ store }) => {
    await store.maintenance.send(new ravendb.PutClientConfigurationOperation({ maxNumberOfRequestsPerSession: 40, etag: 0, disabled: false }));
    const stored = await store.maintenance.send(new ravendb.GetClientConfigurationOperation());
    assert.equal(stored.configuration.maxNumberOfRequestsPerSession, 40);
});

test("the topology names the address that was used", async ({ store, name }) => {
    await load(store, "users/1");
    const nodes = store.getRequestExecutor().getTopologyNodes();
    assert.deepEqual(nodes.map(node => [node.url, node.database, node.clusterTag]), [[url, name, "A"]]);
});

test("without topology updates", async ({ store, name }) => {
    const single = newStore(name, url, { disableTopologyUpdates: true });
    await save(single, "users/1", new User("Ann"));
    assert.equal((await load(single, "users/1")).name, "Ann");
    single.dispose();
    assert.equal(await countDocuments(store), 1);
});

test("the only node can be reordered and promoted", async ({ store, name }) => {
    await store.maintenance.server.send(new ravendb.ReorderDatabaseMembersOperation(name, ["A"]));
    const promoted = await store.maintenance.server.send(new ravendb.PromoteDatabaseNodeOperation(name, "A"));
    assert.equal(promoted.name, name);
});

test("a node that does not exist cannot be added", async ({ store, name }) => {
    await assert.rejects(store.maintenance.server.send(new ravendb.AddDatabaseNodeOperation(name)));
});

test("sixteen databases at once", async ({ store }) => {
    const wanted = range(16).map(newName);
    try {
        await Promise.all(wanted.map(async name => {
            const other = newStore(name);
            await createDatabase(other, name);
            await save(other, "users/1", new User(name));
            other.dispose();
        }));
        const listed = await names(store);
        assert.ok(wanted.every(name => listed.includes(name)));
        for (const name of wanted) {
            const session = store.openSession(name);
            assert.equal((await session.load("users/1", User)).name, name);
        }
    } finally {
        await Promise.all(wanted.map(name => dropDatabase(store, name)));
    }
});

test("a missing database", async () => {
    const other = newStore(newName());
    await assert.rejects(load(other, "users/1"), error => error.name === "DatabaseDoesNotExistException");
    other.dispose();
});
