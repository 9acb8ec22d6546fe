// Patches: by script, through sessions, and what goes wrong with them.

import assert from "node:assert/strict";
import { User, countDocuments, load, ravendb, save, test } from "./harness.mjs";

async function patch(store, script, values = {}, id = "users/1", more = {}) {
    const request = ravendb.PatchRequest.forScript(script);
    request.values = values;
    return store.operations.send(new ravendb.PatchOperation(id, null, request, more.missing, more.skip));
}

function patchTest(title, work) {
    test(title, async given => {
        await save(given.store, "users/1", Object.assign(new User("Ann", 30), { tags: ["a", "b", "c"] }));
        await work(given);
    });
}

patchTest("a script with arguments", async ({ store }) => {
    const result = await patch(store, "this.age += args.n; this.name = args.name", { n: 12, name: "Anna" });
    assert.equal(result.status ?? result, "Patched");
    const user = await load(store, "users/1");
    assert.deepEqual([user.name, user.age, user.tags], ["Anna", 42, ["a", "b", "c"]]);
});

for (const [name, script, expected] of [
    ["push", "this.tags.push('d')", ["a", "b", "c", "d"]],
    ["splice", "this.tags.splice(1, 1)", ["a", "c"]],
    ["map", "this.tags = this.tags.map(function (x) { return x + x; })", ["aa", "bb", "cc"]],
    ["of nothing", "this.tags = this.nope.filter(x => x)", []],
]) {
    patchTest(`a list in a script: ${name}`, async ({ store }) => {
        await patch(store, script);
        assert.deepEqual((await load(store, "users/1")).tags, expected);
    });
}

patchTest("a patch that changes nothing", async ({ store }) => {
    const result = await patch(store, "this.age = 30");
    assert.equal(result.status ?? result, "NotModified");
});

patchTest("a missing document", async ({ store }) => {
    const result = await patch(store, "this.age = 31", {}, "users/none");
    assert.equal(result.status ?? result, "DocumentDoesNotExist");
    assert.equal(await load(store, "users/none"), null);
});

patchTest("patch if missing", async ({ store }) => {
    const missing = ravendb.PatchRequest.forScript("this.name = 'New'; this.age = 1; this['@metadata'] = { '@collection': 'Users' }");
    for (const status of ["Created", "Patched"]) {
        const result = await patch(store, "this.age++", {}, "users/2", { missing });
        assert.equal(result.status ?? result, status);
    }
    assert.equal((await load(store, "users/2")).age, 2);
});

for (const [name, script] of [["throw", "this.age = 0; throw 5"], ["syntax", "this.age = ;"], ["endless", "this.age = 0; while (true) {}"]]) {
    patchTest(`a script that fails changes nothing: ${name}`, async ({ store }) => {
        await assert.rejects(patch(store, script));
        assert.equal((await load(store, "users/1")).age, 30);
    });
}

patchTest("sets, increments and lists in a session", async ({ store }) => {
    const session = store.openSession();
    session.advanced.patch("users/1", "name", "Anna");
    session.advanced.increment("users/1", "age", 5);
    session.advanced.patchArray("users/1", "tags", tags => tags.push("d", "e"));
    await session.saveChanges();
    const user = await load(store, "users/1");
    assert.deepEqual([user.name, user.age, user.tags], ["Anna", 35, ["a", "b", "c", "d", "e"]]);
});

patchTest("a tracked entity in a session", async ({ store }) => {
    const session = store.openSession();
    const user = await session.load("users/1", User);
    session.advanced.increment(user, "age", 1);
    session.advanced.patch(user, "company", "companies/1");
    await session.saveChanges();
    const after = await load(store, "users/1");
    assert.deepEqual([after.age, after.company], [31, "companies/1"]);
});

patchTest("add or increment, add or patch", async ({ store }) => {
    const session = store.openSession();
    session.advanced.addOrIncrement("users/9", Object.assign(new User("New", 1)), "age", 5);
    session.advanced.addOrIncrement("users/1", new User("No", 1), "age", 5);
    session.advanced.addOrPatch("users/8", new User("Eight", 8), "age", 80);
    await session.saveChanges();
    const ages = [];
    for (const id of ["users/9", "users/1", "users/8"]) {
        ages.push((await load(store, id)).age);
    }
    assert.deepEqual(ages, [1, 35, 8]);
});

patchTest("a batch is all or nothing", async ({ store }) => {
    const session = store.openSession();
    await session.store(new User("Bob", 1), "users/2");
    session.advanced.defer(new ravendb.PatchCommandData("users/1", null, ravendb.PatchRequest.forScript("this.age = 0; throw 'no'")));
    await assert.rejects(session.saveChanges());
    assert.equal((await load(store, "users/1")).age, 30);
    assert.equal(await countDocuments(store), 1);
});

patchTest("a batch of one script over several documents", async ({ store }) => {
    await save(store, "users/2", new User("Bob", 1));
    const session = store.openSession();
    session.advanced.defer(new ravendb.BatchPatchCommandData(ravendb.PatchRequest.forScript("this.age = 77"), null, "users/1", "users/2", "users/none"));
    await session.saveChanges();
    assert.deepEqual([(await load(store, "users/1")).age, (await load(store, "users/2")).age], [77, 77]);
});
