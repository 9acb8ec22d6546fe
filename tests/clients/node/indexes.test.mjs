// Indexes as things to put, look at, stop, lock, change and remove; waiting for them; what is told of them as it happens.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { ids, put, SHOP } from "./cases.mjs";
import { Events, User, load, ravendb, save, test } from "./harness.mjs";

const BY_NAME = "from p in docs.Products select new { p.name }";
const BY_STOCK = "from p in docs.Products select new { p.stock }";
const DIVIDES = "from p in docs.Products select new { p.name, share = 1000 / p.stock }";

function define(text = BY_NAME, name = "Products/ByName", more = {}) {
    return Object.assign(new ravendb.IndexDefinition(), { name, maps: new Set([text]) }, more);
}

// A case with the documents of the shop in its own database: `work({ store, raw, send, define, ask })`.
function shopCase(title, work) {
    test(title, async ({ store, name, raw }) => {
        await put(name, SHOP);
        const send = operation => store.maintenance.send(operation);
        const add = (...definitions) => send(new ravendb.PutIndexesOperation(...(definitions.length ? definitions : [define()])));
        // Ids of what a query of an index gives when the index is caught up.
        const ask = async rql => {
            const session = store.openSession();
            return ids(session, await session.advanced.rawQuery(rql).waitForNonStaleResults().all()).sort();
        };
        await work({ store, name, raw, send, add, ask });
    });
}

const names = send => send(new ravendb.GetIndexNamesOperation(0, 20));
const definition = (send, name = "Products/ByName") => send(new ravendb.GetIndexOperation(name));
const statuses = async send => Object.fromEntries((await send(new ravendb.GetIndexingStatusOperation())).indexes.map(index => [index.name, index.status]));

shopCase("put and get", async ({ send, add }) => {
    const [answer] = await add();
    assert.equal(answer.indexName ?? answer.index, "Products/ByName");
    const found = await definition(send);
    assert.deepEqual([found.name, [...found.maps], found.lockMode, found.priority], ["Products/ByName", [BY_NAME], "Unlock", "Normal"]);
});

shopCase("get of what is not there", async ({ send }) => {
    assert.equal((await definition(send, "Nothing")) ?? null, null);
});

shopCase("fields come back", async ({ send, add }) => {
    const fields = { name: Object.assign(new ravendb.IndexFieldOptions(), { storage: "Yes", indexing: "Search", analyzer: "StandardAnalyzer" }) };
    await add(define(BY_NAME, "Products/ByName", { fields }));
    const { storage, indexing, analyzer } = (await definition(send)).fields.name;
    assert.deepEqual([storage, indexing, analyzer], ["Yes", "Search", "StandardAnalyzer"]);
});

shopCase("several at once", async ({ send, add }) => {
    await add(define(), define(BY_STOCK, "Products/ByStock"));
    assert.deepEqual(await names(send), ["Products/ByName", "Products/ByStock"]);
    assert.deepEqual((await send(new ravendb.GetIndexesOperation(0, 10))).map(index => index.name), ["Products/ByName", "Products/ByStock"]);
    assert.deepEqual(await send(new ravendb.GetIndexNamesOperation(1, 5)), ["Products/ByStock"]);
});

shopCase("delete", async ({ send, add, ask }) => {
    await add();
    assert.deepEqual(await ask("from index 'Products/ByName' where name = 'Milk'"), ["products/7"]);
    await send(new ravendb.DeleteIndexOperation("Products/ByName"));
    assert.deepEqual(await names(send), []);
    await assert.rejects(ask("from index 'Products/ByName' where name = 'Milk'"), /index/i);
});

shopCase("reset", async ({ send, add, ask }) => {
    await add();
    await ask("from index 'Products/ByName'");
    await send(new ravendb.ResetIndexOperation("Products/ByName"));
    assert.deepEqual(await ask("from index 'Products/ByName' where name = 'Milk'"), ["products/7"]);
});

shopCase("statistics", async ({ send, add, ask }) => {
    await add();
    await ask("from index 'Products/ByName'");
    const found = await send(new ravendb.GetIndexStatisticsOperation("Products/ByName"));
    assert.deepEqual([found.name, found.entriesCount, found.mapAttempts, found.mapSuccesses, found.mapErrors], ["Products/ByName", 8, 8, 8, 0]);
});

shopCase("statistics of the database", async ({ send, add }) => {
    await add(define(), define(BY_STOCK, "Products/ByStock"));
    const found = await send(new ravendb.GetStatisticsOperation());
    assert.deepEqual([found.countOfIndexes, found.indexes.map(index => index.name).sort()], [2, ["Products/ByName", "Products/ByStock"]]);
});

for (const [field, after, size, expected] of [
    ["name", null, 10, ["apple", "apple juice", "banana", "cherry pie", "goat cheese", "milk", "rye bread", "éclair"]],
    ["name", "banana", 2, ["cherry pie", "goat cheese"]],
    ["stock", null, 3, ["0", "12", "120"]],
    ["discontinued", null, 10, ["NULL_VALUE", "false", "true"]],
]) {
    shopCase(`terms of ${field}${after ? " after one" : ""}`, async ({ send, add, ask }) => {
        await add(define("from p in docs.Products select new { p.name, p.stock, p.discontinued }", "Products/All"));
        await ask("from index 'Products/All'");
        assert.deepEqual(await send(new ravendb.GetTermsOperation("Products/All", field, after, size)), expected);
    });
}

shopCase("stop and start one", async ({ store, name, send, add, ask }) => {
    await add();
    await ask("from index 'Products/ByName'");
    await send(new ravendb.StopIndexOperation("Products/ByName"));
    assert.deepEqual(await statuses(send), { "Products/ByName": "Paused" });
    await put(name, { "products/9": { name: "Plum", "@metadata": { "@collection": "Products" } } });
    let seen;
    assert.deepEqual(await store.openSession().query({ indexName: "Products/ByName" }).whereEquals("name", "Plum").statistics(statistics => (seen = statistics)).all(), []);
    assert.equal(seen.isStale, true);
    await send(new ravendb.StartIndexOperation("Products/ByName"));
    assert.deepEqual(await ask("from index 'Products/ByName' where name = 'Plum'"), ["products/9"]);
});

shopCase("stop and start all", async ({ send, add }) => {
    await add(define(), define(BY_STOCK, "Products/ByStock"));
    await send(new ravendb.StopIndexingOperation());
    assert.deepEqual(await statuses(send), { "Products/ByName": "Paused", "Products/ByStock": "Paused" });
    await send(new ravendb.StartIndexingOperation());
    assert.deepEqual(await statuses(send), { "Products/ByName": "Running", "Products/ByStock": "Running" });
});

shopCase("disable and enable", async ({ send, add, ask }) => {
    await add();
    await send(new ravendb.DisableIndexOperation("Products/ByName"));
    assert.deepEqual(await statuses(send), { "Products/ByName": "Disabled" });
    await send(new ravendb.EnableIndexOperation("Products/ByName"));
    assert.deepEqual(await ask("from index 'Products/ByName' where name = 'Milk'"), ["products/7"]);
});

for (const priority of ["Low", "High"]) {
    shopCase(`priority ${priority}`, async ({ send, add }) => {
        await add();
        await send(new ravendb.SetIndexesPriorityOperation({ indexNames: ["Products/ByName"], priority }));
        assert.equal((await definition(send)).priority, priority);
    });
}

for (const [mode, message] of [["LockedIgnore", null], ["LockedError", /LockedError/]]) {
    shopCase(`lock mode ${mode}`, async ({ send, add }) => {
        await add();
        await send(new ravendb.SetIndexesLockOperation({ indexNames: ["Products/ByName"], mode }));
        assert.equal((await definition(send)).lockMode, mode);
        await (message ? assert.rejects(add(define(BY_STOCK)), message) : add(define(BY_STOCK)));
        assert.deepEqual([...(await definition(send)).maps], [BY_NAME]);
    });
}

shopCase("side by side", async ({ send, add, ask }) => {
    await add();
    await ask("from index 'Products/ByName'");
    await send(new ravendb.StopIndexingOperation());
    await add(define("from p in docs.Products select new { p.name, p.stock }"));
    assert.deepEqual(await names(send), ["Products/ByName", "ReplacementOf/Products/ByName"]);
    assert.deepEqual(await ask("from index 'Products/ByName' where name = 'Milk'"), ["products/7"]);
    await send(new ravendb.StartIndexingOperation());
    for (let n = 0; n < 600 && (await names(send)).length > 1; n++) {
        await sleep(50);
    }
    assert.deepEqual(await ask("from index 'Products/ByName' where name = 'Milk' and stock = 200"), ["products/7"]);
});

shopCase("the same definition changes nothing", async ({ send, add }) => {
    await add();
    await send(new ravendb.StopIndexingOperation());
    await add();
    assert.deepEqual(await names(send), ["Products/ByName"]);
});

for (const [title, other, expected] of [
    ["the same", () => define(), false],
    ["another map", () => define(BY_STOCK), true],
    ["a new one", () => define(BY_NAME, "Other"), true],
    ["another field", () => define(BY_NAME, "Products/ByName", { fields: { name: Object.assign(new ravendb.IndexFieldOptions(), { indexing: "Exact" }) } }), true],
]) {
    shopCase(`has changed: ${title}`, async ({ send, add }) => {
        await add();
        assert.equal(await send(new ravendb.IndexHasChangedOperation(other())), expected);
    });
}

// The errors of an index, once there are some: they may be written a moment after the entries.
async function errorsOf(send, name) {
    for (let n = 0; n < 600; n++) {
        const [found] = await send(new ravendb.GetIndexErrorsOperation([name]));
        if (found.errors.length) {
            return found;
        }
        await sleep(50);
    }
    throw new Error("no errors");
}

shopCase("an error is kept, and removed", async ({ send, add, ask }) => {
    await add(define(DIVIDES, "Products/Share"));
    assert.equal((await ask("from index 'Products/Share'")).includes("products/8"), false);
    assert.deepEqual(await ask("from index 'Products/Share' where share = 8"), ["products/1"]);
    const { errors } = await errorsOf(send, "Products/Share");
    assert.deepEqual(errors.map(error => [error.document, error.action]), [["products/8", "Map"]]);
    assert.match(errors[0].error, /zero/);
    await send(new ravendb.DeleteIndexErrorsOperation(["Products/Share"]));
    assert.deepEqual((await send(new ravendb.GetIndexErrorsOperation(["Products/Share"])))[0].errors, []);
});

for (const [title, text, message] of [
    ["C# without an end", "from p in docs.Products select new { p.name", /compil/i],
    ["JavaScript without an end", "map('Products', p => { return { name: p.name }", /javascript|compil|parse|unexpected/i],
]) {
    shopCase(`what does not compile is refused: ${title}`, async ({ send, add }) => {
        await assert.rejects(add(define(text, "Bad")), error => message.test(`${error.name} ${error.message}`));
        assert.deepEqual(await names(send), []);
    });
}

shopCase("a changed related document", async ({ store, add, ask }) => {
    await add(define('from p in docs.Products select new { category = LoadDocument(p.category, "Categories").name }', "Products/ByCategory"));
    assert.deepEqual(await ask("from index 'Products/ByCategory' where category = 'Dairy'"), ["products/6", "products/7"]);
    const session = store.openSession();
    (await session.load("categories/3")).name = "Milk and cheese";
    await session.saveChanges();
    assert.deepEqual(await ask("from index 'Products/ByCategory' where category = 'Dairy'"), []);
    assert.deepEqual(await ask("from index 'Products/ByCategory' where category = 'milk and cheese'"), ["products/6", "products/7"]);
});

// ---- JavaScript classes -------------------------------------------------------------------------------------------------

class Products_ByWords extends ravendb.AbstractJavaScriptIndexCreationTask {
    constructor() {
        super();
        this.map("Products", product => ({ words: product.name.toLowerCase().split(" "), price: product.price }));
        this.store("price", "Yes");
    }
}

class Products_Totals extends ravendb.AbstractJavaScriptIndexCreationTask {
    constructor() {
        super();
        this.map("Products", product => ({ category: product.category, count: 1, stock: product.stock }));
        this.reduce(results => results.groupBy(result => result.category).aggregate(group => ({
            category: group.key,
            count: group.values.reduce((sum, value) => sum + value.count, 0),
            stock: group.values.reduce((sum, value) => sum + value.stock, 0),
        })));
    }
}

shopCase("an index of JavaScript functions", async ({ store, ask }) => {
    await new Products_ByWords().execute(store);
    assert.deepEqual(await ask("from index 'Products/ByWords' where words = 'apple'"), ["products/1", "products/4"]);
});

shopCase("a map and a reduce of JavaScript functions", async ({ store }) => {
    await new Products_Totals().execute(store);
    const found = await store.openSession().query({ indexName: "Products/Totals" }).orderBy("category").waitForNonStaleResults().all();
    assert.deepEqual(found.map(({ category, count, stock }) => [category, count, stock]), [["categories/1", 3, 260], ["categories/2", 3, 35], ["categories/3", 2, 212]]);
});

shopCase("indexes of several classes at once", async ({ store, send }) => {
    await store.executeIndexes([new Products_ByWords(), new Products_Totals()]);
    assert.deepEqual(await names(send), ["Products/ByWords", "Products/Totals"]);
});

// ---- waiting ------------------------------------------------------------------------------------------------------------

const USERS = define("from u in docs.Users select new { u.name }", "Users/ByName");

// An index that has caught up, and indexing stopped.
async function stopped(store) {
    await store.maintenance.send(new ravendb.PutIndexesOperation(USERS));
    await store.openSession().query({ indexName: "Users/ByName" }).waitForNonStaleResults().all();
    await store.maintenance.send(new ravendb.StopIndexingOperation());
}

test("waiting after saving", async ({ store }) => {
    await store.maintenance.send(new ravendb.PutIndexesOperation(USERS));
    for (let n = 0; n < 10; n++) {
        const session = store.openSession();
        session.advanced.waitForIndexesAfterSaveChanges({ timeout: 60_000 });
        await session.store(new User(`user ${n}`), `users/${n}`);
        await session.saveChanges();
        const found = await store.openSession().query({ indexName: "Users/ByName", documentType: User }).whereEquals("name", `user ${n}`).all();
        assert.equal(found.length, 1);
    }
});

test("waiting after saving, too long", async ({ store }) => {
    await stopped(store);
    const session = store.openSession();
    session.advanced.waitForIndexesAfterSaveChanges({ timeout: 200, throwOnTimeout: true });
    await session.store(new User("Ann"), "users/1");
    await assert.rejects(session.saveChanges(), /time/i);
    assert.equal((await load(store, "users/1")).name, "Ann");
});

test("a stopped index is stale, and a query waits only so long", async ({ store }) => {
    await stopped(store);
    await save(store, "users/1", new User("Ann"));
    let seen;
    const query = () => store.openSession().query({ indexName: "Users/ByName", documentType: User });
    assert.deepEqual(await query().statistics(statistics => (seen = statistics)).all(), []);
    assert.equal(seen.isStale, true);
    // Without a look at the message: the client fails while it writes it.
    await assert.rejects(query().waitForNonStaleResults(200).all());
    await store.maintenance.send(new ravendb.StartIndexingOperation());
    assert.equal((await query().waitForNonStaleResults().statistics(statistics => (seen = statistics)).all()).length, 1);
    assert.equal(seen.isStale, false);
});

test("a map and a reduce follow changes", async ({ store }) => {
    const reduce = "from r in results group r by r.company into g select new { company = g.Key, count = g.Sum(x => x.count), age = g.Sum(x => x.age) }";
    await store.maintenance.send(new ravendb.PutIndexesOperation(define("from u in docs.Users select new { u.company, count = 1, u.age }", "Users/PerCompany", { reduce })));
    const rows = async () => (await store.openSession().query({ indexName: "Users/PerCompany" }).orderBy("company").waitForNonStaleResults().all()).map(row => [row.company, row.count, row.age]);
    const session = store.openSession();
    for (let n = 0; n < 10; n++) {
        await session.store(new User(`user ${n}`, n, `companies/${n % 2}`), `users/${n}`);
    }
    await session.saveChanges();
    assert.deepEqual(await rows(), [["companies/0", 5, 20], ["companies/1", 5, 25]]);
    (await session.load("users/1")).age = 101;
    (await session.load("users/2")).company = "companies/2";
    await session.delete("users/4");
    await session.saveChanges();
    assert.deepEqual(await rows(), [["companies/0", 3, 14], ["companies/1", 5, 125], ["companies/2", 1, 2]]);
});

async function watch(store, choose) {
    const changes = store.changes();
    await changes.ensureConnectedNow();
    const events = new Events();
    const observable = choose(changes);
    observable.on("data", event => events.push(event));
    await observable.ensureSubscribedNow?.();
    return { changes, until: async (name, type) => {
        for (;;) {
            const event = await events.next();
            if (event.name === name && event.type === type) {
                return;
            }
        }
    } };
}

for (const [title, type, change] of [
    ["added", "IndexAdded", (send, other) => send(new ravendb.PutIndexesOperation(other))],
    ["removed", "IndexRemoved", send => send(new ravendb.DeleteIndexOperation("Users/ByName"))],
    ["locked", "LockModeChanged", send => send(new ravendb.SetIndexesLockOperation({ indexNames: ["Users/ByName"], mode: "LockedIgnore" }))],
    ["of another priority", "PriorityChanged", send => send(new ravendb.SetIndexesPriorityOperation({ indexNames: ["Users/ByName"], priority: "High" }))],
    ["finished with a batch", "BatchCompleted", async (send, _, store) => save(store, "users/1", new User("Ann"))],
    ["replaced", "SideBySideReplace", async (send, _, store) => {
        await save(store, "users/1", new User("Ann"));
        await send(new ravendb.PutIndexesOperation(define("from u in docs.Users select new { u.name, u.age }", "Users/ByName")));
    }],
]) {
    test(`it is told that an index is ${title}`, async ({ store }) => {
        const send = operation => store.maintenance.send(operation);
        const name = title === "added" ? "Users/ByAge" : "Users/ByName";
        await send(new ravendb.PutIndexesOperation(USERS));
        const { changes, until } = await watch(store, feed => feed.forAllIndexes());
        await change(send, define("from u in docs.Users select new { u.age }", "Users/ByAge"), store);
        await until(name, type);
        changes.dispose();
    });
}

const FOLDING = name => `
using System.IO;
using Lucene.Net.Analysis;
public class ${name} : Analyzer
{
    public override TokenStream TokenStream(string fieldName, TextReader reader)
    {
        return new ASCIIFoldingFilter(new LowerCaseFilter(new WhitespaceTokenizer(reader)));
    }
}`;

shopCase("an analyzer of one's own", async ({ store, raw, send, add, ask }) => {
    await send(new ravendb.PutAnalyzersOperation({ name: "Folding", code: FOLDING("Folding") }));
    const fields = { name: Object.assign(new ravendb.IndexFieldOptions(), { indexing: "Search", analyzer: "Folding" }) };
    await add(define(BY_NAME, "Products/ByName", { fields }));
    await save(store, "products/99", { name: "Crème Brûlée", "@metadata": { "@collection": "Products" } });
    assert.deepEqual(await ask("from index 'Products/ByName' where search(name, 'brulee')"), ["products/99"]);
    assert.deepEqual(await ask("from index 'Products/ByName' where search(name, 'CRÈME')"), ["products/99"]);
    await send(new ravendb.DeleteIndexOperation("Products/ByName"));
    await send(new ravendb.DeleteAnalyzerOperation("Folding"));
    assert.deepEqual((await (await raw("GET", "/analyzers")).json()).Analyzers, []);
    await assert.rejects(add(define(BY_NAME, "Products/ByName", { fields })), /Cannot find analyzer type 'Folding'/);
});

shopCase("a class that is no analyzer", async ({ send }) => {
    await assert.rejects(send(new ravendb.PutAnalyzersOperation({ name: "Other", code: FOLDING("Folding") })), /Could not find type 'Other'/);
    await assert.rejects(send(new ravendb.PutAnalyzersOperation({ name: "Folding", code: FOLDING("Folding").replace("LowerCaseFilter", "NoSuchFilter") })), /NoSuchFilter/);
});
