// Queries by the client's builder: conditions, order, paging, projections, includes, laziness, statistics, waiting; patches and deletions
// by query.

import assert from "node:assert/strict";
import { ids, put, rows, shopTest, SHOP, useShop } from "./cases.mjs";
import { User, collect, countDocuments, load, ravendb, save, test } from "./harness.mjs";

useShop();

const products = session => session.query({ collection: "Products" }).waitForNonStaleResults();
const keys = numbers => numbers.map(n => `products/${n}`);

for (const [title, build, expected] of [
    ["equals", q => q.whereEquals("name", "APPLE"), [1]],
    ["equals a number", q => q.whereEquals("stock", 30), [5]],
    ["equals a fraction", q => q.whereEquals("price", 18.5), [6]],
    ["equals true", q => q.whereEquals("discontinued", true), [5]],
    ["equals null", q => q.whereEquals("released", null), [7]],
    ["equals exactly", q => q.whereEquals("name", "Apple", true), [1]],
    ["equals exactly, in another case", q => q.whereEquals("name", "apple", true), []],
    ["not equals", q => q.whereNotEquals("category", "categories/2"), [1, 2, 4, 6, 7]],
    ["in", q => q.whereIn("name", ["milk", "banana"]), [2, 7]],
    ["in numbers", q => q.whereIn("stock", [5, 12, 13]), [3, 6]],
    ["in nothing", q => q.whereIn("name", []), []],
    ["not in", q => q.not().whereIn("category", ["categories/1", "categories/3"]), [3, 5, 8]],
    ["starts with", q => q.whereStartsWith("name", "aPP"), [1, 4]],
    ["ends with", q => q.whereEndsWith("name", "ad"), [5]],
    ["between", q => q.whereBetween("stock", 12, 80), [2, 4, 5, 6]],
    ["between dates", q => q.whereBetween("released", new Date(Date.UTC(2024, 0, 15)), new Date(Date.UTC(2024, 2, 1, 12, 30))), [1, 2, 8]],
    ["greater", q => q.whereGreaterThan("stock", 80), [1, 7]],
    ["greater or equal", q => q.whereGreaterThanOrEqual("stock", 80), [1, 2, 7]],
    ["less", q => q.whereLessThan("stock", 5), [8]],
    ["less or equal", q => q.whereLessThanOrEqual("stock", 5), [3, 8]],
    ["a fraction between", q => q.whereBetween("price", 2.5, 4.5), [1, 2, 4]],
    ["exists", q => q.whereExists("released"), [1, 2, 3, 4, 6, 7, 8]],
    ["does not exist", q => q.not().whereExists("released"), [5]],
    ["regex", q => q.whereRegex("name", "^[ab]"), [1, 2, 4]],
    ["search", q => q.search("description", "rye goats"), [5, 6]],
    ["search all words", q => q.search("description", "crisp juice", "AND"), [4]],
    ["search any word", q => q.search("description", "crisp juice", "OR"), [1, 4]],
    ["search and search", q => q.search("description", "morning").andAlso().search("description", "milk"), [7]],
    ["lucene", q => q.whereLucene("name", "ban*"), [2]],
    ["contains any", q => q.containsAny("tags", ["drink", "yellow"]), [2, 4]],
    ["contains all", q => q.containsAll("tags", ["fresh", "sweet"]), [1]],
    ["fuzzy", q => q.whereEquals("name", "bannana").fuzzy(0.6), [2]],
    ["proximity", q => q.search("description", "dark baked").proximity(2), [5]],
    ["proximity, too far", q => q.search("description", "dark rye").proximity(1), []],
    ["a nested path", q => q.whereEquals("supplier.address.zip", "69002"), [4]],
    ["and", q => q.whereEquals("category", "categories/1").andAlso().whereLessThan("stock", 100), [2, 4]],
    ["and by default", q => q.whereEquals("category", "categories/1").whereLessThan("stock", 100), [2, 4]],
    ["or", q => q.whereEquals("name", "Milk").orElse().whereEquals("name", "Apple"), [1, 7]],
    ["or by default", q => q.usingDefaultOperator("OR").whereEquals("name", "Milk").whereEquals("name", "Apple"), [1, 7]],
    ["a subclause", q => q.openSubclause().whereEquals("name", "Milk").orElse().whereEquals("tags", "fresh").closeSubclause().andAlso().whereGreaterThan("price", 2.9), [1, 6]],
    ["not a subclause", q => q.not().openSubclause().whereEquals("tags", "sweet").orElse().whereEquals("tags", "fresh").closeSubclause(), [5, 7]],
    ["negate next", q => q.negateNext().whereEquals("category", "categories/1"), [3, 5, 6, 7, 8]],
]) {
    shopTest(`where ${title}`, async ({ store }) => {
        const session = store.openSession();
        const found = await build(products(session)).all();
        assert.deepEqual(ids(session, found).sort(), keys(expected));
    });
}

for (const [title, build, expected] of [
    ["text", q => q.orderBy("name"), [1, 4, 2, 3, 6, 7, 5, 8]],
    ["text descending", q => q.orderByDescending("name"), [8, 5, 7, 6, 3, 2, 4, 1]],
    ["whole numbers", q => q.orderBy("stock", "Long"), [8, 3, 6, 5, 4, 2, 1, 7]],
    ["fractions descending", q => q.orderByDescending("price", "Double"), [6, 3, 8, 5, 4, 1, 2, 7]],
    ["numbers as text", q => q.orderBy("stock", "String"), [8, 6, 1, 7, 5, 3, 4, 2]],
    ["two fields", q => q.orderBy("category").orderByDescending("stock", "Long"), [1, 2, 4, 5, 3, 8, 7, 6]],
    ["add order", q => q.addOrder("price", true, "Double"), [6, 3, 8, 5, 4, 1, 2, 7]],
    ["a page", q => q.orderBy("name").skip(2).take(3), [2, 3, 6]],
    ["past the end", q => q.orderBy("name").skip(8).take(3), []],
    ["score", q => q.whereEquals("name", "Milk").boost(2).orElse().whereEquals("name", "Apple").boost(9).orderByScore(), [1, 7]],
    ["score descending", q => q.whereEquals("name", "Milk").boost(2).orElse().whereEquals("name", "Apple").boost(9).orderByScoreDescending(), [7, 1]],
]) {
    shopTest(`order by ${title}`, async ({ store }) => {
        const session = store.openSession();
        assert.deepEqual(ids(session, await build(products(session)).all()), keys(expected));
    });
}

shopTest("a random order by a seed stays", async ({ store }) => {
    const session = store.openSession();
    const ask = async () => ids(session, await products(session).whereGreaterThan("stock", -1).randomOrdering("seed").all());
    const one = await ask();
    assert.deepEqual([...one].sort(), keys([1, 2, 3, 4, 5, 6, 7, 8]));
    assert.deepEqual(await ask(), one);
});

test("what a query gives is tracked", async ({ store }) => {
    await save(store, "users/1", new User("Ann", 30));
    const session = store.openSession();
    const user = await session.query(User).whereEquals("name", "ann").waitForNonStaleResults().single();
    assert.ok(user instanceof User);
    user.age = 31;
    await session.saveChanges();
    assert.equal((await load(store, "users/1")).age, 31);
});

shopTest("what is not tracked", async ({ store }) => {
    const session = store.openSession();
    await products(session).whereEquals("name", "Milk").noTracking().all();
    assert.equal(session.advanced.isLoaded("products/7"), false);
});

for (const [title, build, expected] of [
    ["everything", q => q, 8],
    ["some", q => q.whereEquals("category", "categories/3"), 2],
    ["none", q => q.whereEquals("category", "none"), 0],
    ["not of a page", q => q.whereGreaterThan("stock", 0).skip(3), 7],
]) {
    shopTest(`count: ${title}`, async ({ store }) => {
        assert.equal(await build(products(store.openSession())).count(), expected);
    });
}

shopTest("any", async ({ store }) => {
    assert.equal(await products(store.openSession()).whereEquals("name", "Milk").any(), true);
    assert.equal(await products(store.openSession()).whereEquals("name", "none").any(), false);
});

shopTest("first", async ({ store }) => {
    assert.equal((await products(store.openSession()).orderBy("stock", "Long").first()).name, "Éclair");
});

shopTest("first of nothing", async ({ store }) => {
    assert.equal(await products(store.openSession()).whereEquals("name", "none").firstOrNull(), null);
    await assert.rejects(products(store.openSession()).whereEquals("name", "none").first());
});

shopTest("single", async ({ store }) => {
    assert.equal((await products(store.openSession()).whereEquals("stock", 12).single()).name, "Goat cheese");
    await assert.rejects(products(store.openSession()).whereEquals("category", "categories/1").single());
    await assert.rejects(products(store.openSession()).whereEquals("category", "none").single());
});

shopTest("statistics", async ({ store }) => {
    let seen;
    const found = await products(store.openSession()).whereGreaterThan("stock", 10).orderBy("stock", "Long").take(2).statistics(statistics => (seen = statistics)).all();
    assert.equal(found.length, 2);
    assert.deepEqual([seen.totalResults, seen.isStale], [6, false]);
    assert.match(seen.indexName, /^Auto\/Products\/By.*stock/);
    assert.ok(seen.resultEtag);
});

shopTest("statistics of a collection", async ({ store }) => {
    let seen;
    const found = await store.openSession().query({ collection: "Products" }).take(3).statistics(statistics => (seen = statistics)).all();
    assert.deepEqual([found.length, seen.totalResults, seen.indexName], [3, 8, "collection/Products"]);
});

shopTest("timings", async ({ store }) => {
    let seen;
    await products(store.openSession()).whereEquals("name", "Milk").timings(timings => (seen = timings)).all();
    assert.ok(seen.durationInMs >= 0);
    assert.ok("query" in seen.timings || "Query" in seen.timings);
});

shopTest("a projection", async ({ store }) => {
    const found = await products(store.openSession()).whereEquals("name", "Milk").selectFields(["name", "stock"]).all();
    assert.deepEqual(rows(found).map(({ name, stock }) => [name, stock]), [["Milk", 200]]);
});

shopTest("a projection of one property", async ({ store }) => {
    const found = await products(store.openSession()).whereEquals("category", "categories/3").orderBy("name").selectFields("name").all();
    assert.deepEqual(found, ["Goat cheese", "Milk"]);
});

shopTest("a projection under other names", async ({ store }) => {
    const data = new ravendb.QueryData(["name", "stock"], ["title", "pieces"]);
    const [found] = await products(store.openSession()).whereEquals("name", "Milk").selectFields(data, Object).all();
    assert.deepEqual([found.title, found.pieces], ["Milk", 200]);
});

shopTest("distinct", async ({ store }) => {
    const found = await products(store.openSession()).whereGreaterThan("stock", -1).selectFields("category").distinct().all();
    assert.deepEqual(found.sort(), ["categories/1", "categories/2", "categories/3"]);
});

shopTest("an include", async ({ store }) => {
    const session = store.openSession();
    const product = await products(session).whereEquals("name", "Milk").include("category").single();
    const requests = session.advanced.numberOfRequests;
    assert.equal((await session.load(product.category)).name, "Dairy");
    assert.equal(session.advanced.numberOfRequests, requests);
});

shopTest("includes by a builder", async ({ store }) => {
    const session = store.openSession();
    await session.query({ collection: "Orders" }).whereEquals("status", "Open").include(builder => builder.includeDocuments("lines[].product").includeDocuments("customer")).waitForNonStaleResults().all();
    const requests = session.advanced.numberOfRequests;
    assert.equal((await session.load("products/5")).name, "Rye bread");
    assert.equal((await session.load("customers/2")).name, "Bob Baker");
    assert.equal(session.advanced.numberOfRequests, requests);
});

shopTest("group by", async ({ store }) => {
    const found = await products(store.openSession()).groupBy("category").selectKey("category").selectCount("count").orderBy("category").ofType(Object).all();
    assert.deepEqual(rows(found).map(({ category, count }) => [category, count]), [["categories/1", 3], ["categories/2", 3], ["categories/3", 2]]);
});

shopTest("group by with a sum", async ({ store }) => {
    const found = await products(store.openSession()).groupBy("category").selectKey("category").selectSum(new ravendb.GroupByField("stock", "pieces")).whereEquals("category", "categories/3").ofType(Object).all();
    assert.deepEqual(rows(found).map(({ category, pieces }) => [category, pieces]), [["categories/3", 212]]);
});

shopTest("a lazy query", async ({ store }) => {
    const session = store.openSession();
    const milk = products(session).whereEquals("name", "Milk").lazily();
    const rooms = session.query({ collection: "Rooms" }).whereGreaterThan("size", 20).waitForNonStaleResults().lazily();
    assert.equal(session.advanced.numberOfRequests, 0);
    assert.deepEqual(ids(session, await milk.getValue()), ["products/7"]);
    assert.deepEqual(ids(session, await rooms.getValue()).sort(), ["rooms/1", "rooms/3"]);
    assert.equal(session.advanced.numberOfRequests, 1);
});

shopTest("a lazy count", async ({ store }) => {
    assert.equal(await products(store.openSession()).whereEquals("category", "categories/2").countLazily().getValue(), 3);
});

shopTest("a stream of a query", async ({ store }) => {
    await products(store.openSession()).whereGreaterThan("stock", 10).all();
    const session = store.openSession();
    const query = session.query({ collection: "Products" }).whereGreaterThan("stock", 10).orderBy("stock", "Long");
    const items = await collect(await session.advanced.stream(query));
    assert.deepEqual(items.map(item => item.document.name), ["Goat cheese", "Rye bread", "apple juice", "Banana", "Apple", "Milk"]);
    assert.equal(session.advanced.isLoaded("products/7"), false);
});

shopTest("a stream of a raw query with statistics", async ({ store }) => {
    const session = store.openSession();
    let seen;
    const query = session.advanced.rawQuery("from Products where category = $c").addParameter("c", "categories/3");
    const items = await collect(await session.advanced.stream(query, statistics => (seen = statistics)));
    assert.deepEqual(items.map(item => item.document.name).sort(), ["Goat cheese", "Milk"]);
    assert.equal(seen.totalResults, 2);
});

shopTest("a stream of projections", async ({ store }) => {
    const session = store.openSession();
    const query = session.advanced.rawQuery("from Products as p where p.price < 3 order by p.name select { title: p.name }");
    assert.deepEqual((await collect(await session.advanced.stream(query))).map(item => item.document.title), ["Banana", "Milk"]);
});

test("a value of compare exchange", async ({ store, name }) => {
    await put(name, SHOP);
    await store.operations.send(new ravendb.PutCompareExchangeValueOperation("best", "Banana", 0));
    const session = store.openSession();
    const found = await products(session).whereEquals("name", ravendb.CmpXchg.value("best")).all();
    assert.deepEqual(ids(session, found), ["products/2"]);
});

test("what has not changed is not sent again", async ({ store, name }) => {
    await put(name, SHOP);
    const statuses = [];
    store.getRequestExecutor().on("succeedRequest", event => event.url.includes("/queries") && statuses.push(event.response.status));
    const ask = async () => (await products(store.openSession()).whereEquals("category", "categories/3").all()).length;
    assert.deepEqual([await ask(), await ask()], [2, 2]);
    await put(name, { "products/9": { name: "Butter", category: "categories/3", "@metadata": { "@collection": "Products" } } });
    assert.deepEqual([await ask(), await ask()], [3, 3]);
    assert.deepEqual(statuses, [200, 304, 200, 304]);
});

test("a query sees what was saved before", async ({ store }) => {
    for (let n = 0; n < 20; n++) {
        await save(store, `users/${n}`, new User(`user ${n}`, n));
        const users = await store.openSession().query(User).whereEquals("age", n).waitForNonStaleResults().all();
        assert.deepEqual(users.map(user => user.name), [`user ${n}`]);
    }
});

for (const [title, build, expected] of [
    ["two fields", q => q.whereEquals("name", "a").orderBy("age"), "Auto/Users/ByageAndname"],
    ["search", q => q.search("name", "a"), "Auto/Users/BySearch(name)"],
    ["exact", q => q.whereEquals("name", "a", true), "Auto/Users/ByExact(name)"],
    ["nested", q => q.whereEquals("address.city", "a"), "Auto/Users/Byaddress.city"],
    ["array", q => q.whereEquals("lines[].product", "a"), "Auto/Users/Bylines[].product"],
]) {
    test(`the name of an automatic index: ${title}`, async ({ store }) => {
        await save(store, "users/1", new User("Ann", 30));
        let seen;
        await build(store.openSession().query(User)).statistics(statistics => (seen = statistics)).all();
        assert.equal(seen.indexName, expected);
    });
}

shopTest("an index that is not there", async ({ store }) => {
    await assert.rejects(store.openSession().query({ indexName: "Nothing/Here" }).all(), /index/i);
});

async function byQuery(store, operation) {
    await (await store.operations.send(operation)).waitForCompletion();
}

const text = (query, parameters) => Object.assign(new ravendb.IndexQuery(query), { queryParameters: parameters ?? {} });

async function values(store, collection, property) {
    const session = store.openSession();
    const found = await session.query({ collection }).all();
    return Object.fromEntries(found.map(item => [session.advanced.getDocumentId(item), item[property]]));
}

for (const [title, query, parameters, property, expected] of [
    ["a collection", "from Rooms update { this.size = this.size * 2; }", {}, "size", [50, 19, 200, 18.5]],
    ["with parameters", "from Rooms update { this.size = $size; }", { size: 7 }, "size", [7, 7, 7, 7]],
    ["by an alias", "from Rooms as r update { r.label = id(r) + '/' + r.name; }", {}, "label", ["rooms/1/room 10", "rooms/2/Room 2", "rooms/3/room 1", "rooms/4/attic"]],
    ["by ids", "from @all_docs where id() in ('rooms/1', 'customers/2') update { this.seen = 1; }", {}, "seen", [1, undefined, undefined, undefined]],
    ["with a declared function", "declare function grow(r) { r.size += 1; } from Rooms as r update { grow(r); }", {}, "size", [26, 10.5, 101, 10.25]],
    ["of nothing", "from Rooms where id() = 'rooms/none' update { this.size = 0; }", {}, "size", [25, 9.5, 100, 9.25]],
]) {
    test(`patch by query ${title}`, async ({ store, name }) => {
        await put(name, SHOP);
        await byQuery(store, new ravendb.PatchByQueryOperation(text(query, parameters)));
        assert.deepEqual(await values(store, "Rooms", property), Object.fromEntries(expected.map((value, n) => [`rooms/${n + 1}`, value])));
    });
}

test("patch by query with a condition", async ({ store, name }) => {
    await put(name, SHOP);
    await store.openSession().query({ collection: "Rooms" }).whereGreaterThan("size", 20).waitForNonStaleResults().all();
    await byQuery(store, new ravendb.PatchByQueryOperation("from Rooms where size > 20 update { this.big = true; }"));
    assert.deepEqual(await values(store, "Rooms", "big"), { "rooms/1": true, "rooms/2": undefined, "rooms/3": true, "rooms/4": undefined });
});

test("patch by query with a loaded document", async ({ store, name }) => {
    await put(name, SHOP);
    await byQuery(store, new ravendb.PatchByQueryOperation("from Products as p load p.category as c update { p.group = c.name; }"));
    assert.deepEqual(Object.values(await values(store, "Products", "group")), ["Fruit", "Fruit", "Bakery", "Fruit", "Bakery", "Dairy", "Dairy", "Bakery"]);
});

for (const [title, query, message] of [
    ["throws", "from Rooms update { throw 'enough'; }", /enough/],
    ["is wrong", "from Rooms update { this.size = ; }", /javascript|script|parse|unexpected/i],
]) {
    test(`patch by query that ${title}`, async ({ store, name }) => {
        await put(name, SHOP);
        await assert.rejects(byQuery(store, new ravendb.PatchByQueryOperation(query)), message);
        assert.deepEqual(Object.values(await values(store, "Rooms", "size")), [25, 9.5, 100, 9.25]);
    });
}

for (const [title, query, parameters, expected] of [
    ["a collection", "from Rooms", {}, 22],
    ["by the beginning of an id", "from @all_docs where startsWith(id(), 'products/')", {}, 18],
    ["by ids", "from Rooms where id() in ($ids)", { ids: ["rooms/1", "rooms/2", "rooms/none"] }, 24],
]) {
    test(`delete by query ${title}`, async ({ store, name }) => {
        await put(name, SHOP);
        await byQuery(store, new ravendb.DeleteByQueryOperation(text(query, parameters)));
        assert.equal(await countDocuments(store), expected);
    });
}

test("delete by query with a condition", async ({ store, name }) => {
    await put(name, SHOP);
    await store.openSession().query({ collection: "Rooms" }).whereGreaterThan("size", 20).waitForNonStaleResults().all();
    await byQuery(store, new ravendb.DeleteByQueryOperation(text("from Rooms where size > $n", { n: 20 })));
    assert.deepEqual(Object.keys(await values(store, "Rooms", "size")), ["rooms/2", "rooms/4"]);
});

test("delete by query by an index that is not there", async ({ store, name }) => {
    await put(name, SHOP);
    await assert.rejects(byQuery(store, new ravendb.DeleteByQueryOperation("from index 'Nothing'")), /Nothing/);
    assert.equal(await countDocuments(store), 26);
});
