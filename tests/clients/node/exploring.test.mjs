// Facets, suggestions, more like this, highlighting, explanations and places: ways to look around in what is found.

import assert from "node:assert/strict";
import { ids, put, SHOP, shopTest, useShop } from "./cases.mjs";
import { ravendb, test } from "./harness.mjs";

class Products_Facets extends ravendb.AbstractCsharpIndexCreationTask {
    constructor() {
        super();
        this.map = "from p in docs.Products select new { p.name, p.category, p.price, p.stock, p.tags, p.released, p.discontinued, city = p.supplier.address.city }";
    }
}

class Products_Texts extends ravendb.AbstractCsharpIndexCreationTask {
    constructor() {
        super();
        this.map = "from p in docs.Products select new { p.name, p.description, p.category }";
        this.index("name", "Search");
        this.suggestion("name");
        this.index("description", "Search");
        this.suggestion("description");
        this.store("description", "Yes");
        this.termVector("description", "WithPositionsAndOffsets");
    }
}

class Suppliers_Places extends ravendb.AbstractCsharpIndexCreationTask {
    constructor() {
        super();
        this.map = "from s in docs.Suppliers select new { s.name, place = CreateSpatialField(s.lat, s.lng), area = CreateSpatialField(s.area) }";
    }
}

useShop(async store => {
    for (const index of [new Products_Facets(), new Products_Texts(), new Suppliers_Places()]) {
        await index.execute(store);
        await store.openSession().query({ indexName: index.getIndexName() }).waitForNonStaleResults().all();
    }
});

const facets = (store, build = query => query) => build(store.openSession().query({ indexName: "Products/Facets" }));
const values = facet => facet.values.map(value => [value.range, value.count]);
const sorted = list => [...list].sort((a, b) => (String(a) < String(b) ? -1 : 1));

for (const [field, expected] of Object.entries({
    category: [["categories/1", 3], ["categories/2", 3], ["categories/3", 2]],
    city: [["lille", 2], ["lyon", 4], ["nice", 1]],
    discontinued: [["NULL_VALUE", 1], ["false", 4], ["true", 1]],
})) {
    shopTest(`a facet of terms: ${field}`, async ({ store }) => {
        const found = await facets(store).aggregateBy(builder => builder.byField(field)).execute();
        assert.deepEqual(sorted(values(found[field])), expected);
    });
}

shopTest("a facet of what a condition finds", async ({ store }) => {
    const found = await facets(store, q => q.whereGreaterThan("stock", 20)).aggregateBy(builder => builder.byField("category")).execute();
    assert.deepEqual(sorted(values(found.category)), [["categories/1", 3], ["categories/2", 1], ["categories/3", 1]]);
});

shopTest("a facet of nothing", async ({ store }) => {
    const found = await facets(store, q => q.whereEquals("name", "none")).aggregateBy(builder => builder.byField("category")).execute();
    assert.deepEqual(values(found.category), []);
});

shopTest("two facets", async ({ store }) => {
    const found = await facets(store).aggregateBy(builder => builder.byField("category")).andAggregateBy(builder => builder.byField("city")).execute();
    assert.deepEqual(Object.keys(found).sort(), ["category", "city"]);
    assert.deepEqual(sorted(values(found.city)), [["lille", 2], ["lyon", 4], ["nice", 1]]);
});

shopTest("a facet under another name", async ({ store }) => {
    const found = await facets(store).aggregateBy(builder => builder.byField("city").withDisplayName("place")).execute();
    assert.deepEqual(Object.keys(found), ["place"]);
});

for (const [title, build, read, expected] of [
    ["sum", f => f.sumOn("stock"), value => value.sum, [260, 35, 212]],
    ["min", f => f.minOn("stock"), value => value.min, [60, 0, 12]],
    ["max", f => f.maxOn("stock"), value => value.max, [120, 30, 200]],
    ["average", f => f.averageOn("price"), value => Math.round(value.average * 1000) / 1000, [3.167, 9.25, 9.75]],
    ["sum of fractions", f => f.sumOn("price"), value => value.sum, [9.5, 27.75, 19.5]],
]) {
    shopTest(`aggregation in a facet: ${title}`, async ({ store }) => {
        const found = await facets(store).aggregateBy(builder => build(builder.byField("category"))).execute();
        const byTerm = Object.fromEntries(found.category.values.map(value => [value.range, read(value)]));
        assert.deepEqual(byTerm, { "categories/1": expected[0], "categories/2": expected[1], "categories/3": expected[2] });
    });
}

for (const [mode, expected] of Object.entries({
    ValueAsc: ["baked", "drink", "fresh", "red", "sweet", "yellow"],
    ValueDesc: ["yellow", "sweet", "red", "fresh", "drink", "baked"],
    CountAsc: ["drink", "red", "yellow", "baked", "fresh", "sweet"],
    CountDesc: ["sweet", "fresh", "baked", "drink", "red", "yellow"],
})) {
    shopTest(`order of terms in a facet: ${mode}`, async ({ store }) => {
        const query = facets(store, q => q.whereExists("released").andAlso().whereNotEquals("tags", null));
        const found = await query.aggregateBy(builder => builder.byField("tags").withOptions({ termSortMode: mode })).execute();
        assert.deepEqual(found.tags.values.map(value => value.range), expected);
    });
}

shopTest("a page of terms and what remains", async ({ store }) => {
    const query = facets(store, q => q.whereExists("released").andAlso().whereNotEquals("tags", null));
    const { tags } = await query.aggregateBy(builder => builder.byField("tags").withOptions({ termSortMode: "CountDesc", start: 1, pageSize: 2, includeRemainingTerms: true })).execute();
    assert.deepEqual(values(tags), [["fresh", 3], ["baked", 2]]);
    assert.deepEqual([tags.remainingTerms, tags.remainingTermsCount], [["drink", "red", "yellow"], 3]);
});

shopTest("a facet of ranges", async ({ store }) => {
    const price = ravendb.RangeBuilder.forPath("price");
    const found = await facets(store).aggregateBy(builder => builder.byRanges(price.isLessThan(3.5), price.isGreaterThanOrEqualTo(3.5).isLessThan(10.5), price.isGreaterThanOrEqualTo(10.5))).execute();
    assert.deepEqual(values(found.price), [["price < 3.5", 3], ["price >= 3.5 and price < 10.5", 3], ["price >= 10.5", 2]]);
});

shopTest("ranges with an aggregation", async ({ store }) => {
    const stock = ravendb.RangeBuilder.forPath("stock");
    const found = await facets(store).aggregateBy(builder => builder.byRanges(stock.isLessThanOrEqualTo(12), stock.isGreaterThan(12)).maxOn("price")).execute();
    assert.deepEqual(found.stock.values.map(value => [value.range, value.count, value.max]), [["stock <= 12", 3, 18.5], ["stock > 12", 5, 5]]);
});

test("facets of a setup document", async ({ store, name }) => {
    await put(name, SHOP);
    await new Products_Facets().execute(store);
    const setup = {
        Facets: [{ FieldName: "category", Aggregations: {}, DisplayFieldName: null, Options: null }],
        RangeFacets: [{ Ranges: ["stock < 50", "stock >= 50"], Aggregations: {}, DisplayFieldName: "amount", Options: null }],
        "@metadata": { "@collection": "FacetSetups" },
    };
    await put(name, { "facets/products": setup });
    await facets(store).waitForNonStaleResults().all();
    const found = await facets(store).aggregateUsing("facets/products").execute();
    assert.deepEqual(sorted(values(found.category)), [["categories/1", 3], ["categories/2", 3], ["categories/3", 2]]);
    assert.deepEqual(values(found.amount), [["stock < 50", 4], ["stock >= 50", 4]]);
});

shopTest("lazy facets", async ({ store }) => {
    const lazy = facets(store).aggregateBy(builder => builder.byField("category")).executeLazy();
    assert.deepEqual(sorted(values((await lazy.getValue()).category)), [["categories/1", 3], ["categories/2", 3], ["categories/3", 2]]);
});

shopTest("facets as text", async ({ store }) => {
    const found = await store.openSession().advanced.rawQuery("from index 'Products/Facets' where stock > $n select facet(category, sum(stock)) as kinds").addParameter("n", 20).executeAggregation();
    assert.deepEqual(sorted(found.kinds.values.map(value => [value.range, value.count, value.sum])), [["categories/1", 3, 260], ["categories/2", 1, 30], ["categories/3", 1, 200]]);
});

const suggest = (store, build) => store.openSession().query({ indexName: "Products/Texts" }).suggestUsing(build);

for (const [term, expected] of [["appel", ["apple"]], ["bannana", ["banana"]], ["chese", ["cheese", "cherry"]], ["qqqqqq", []]]) {
    shopTest(`suggestions for ${term}`, async ({ store }) => {
        assert.deepEqual((await suggest(store, builder => builder.byField("name", term)).execute()).name.suggestions, expected);
    });
}

shopTest("suggestions for several terms", async ({ store }) => {
    assert.deepEqual((await suggest(store, builder => builder.byField("name", ["appel", "bannana"])).execute()).name.suggestions.sort(), ["apple", "banana"]);
});

shopTest("suggestions under another name", async ({ store }) => {
    assert.deepEqual((await suggest(store, builder => builder.byField("name", "appel").withDisplayName("perhaps")).execute()).perhaps.suggestions, ["apple"]);
});

for (const [title, options, expected] of [
    ["too exact", { accuracy: 0.9 }, []],
    ["Levenshtein", { accuracy: 0.4, distance: "Levenshtein" }, ["apple", "apples"]],
    ["JaroWinkler", { accuracy: 0.85, distance: "JaroWinkler" }, ["apple", "apples"]],
]) {
    shopTest(`options of suggestions: ${title}`, async ({ store }) => {
        const found = await suggest(store, builder => builder.byField("description", "appel").withOptions({ pageSize: 15, sortMode: "None", distance: "Levenshtein", ...options })).execute();
        assert.deepEqual(found.description.suggestions.sort(), expected);
    });
}

shopTest("lazy suggestions", async ({ store }) => {
    const lazy = suggest(store, builder => builder.byField("name", "appel")).executeLazy();
    assert.deepEqual((await lazy.getValue()).name.suggestions, ["apple"]);
});

shopTest("suggestions of an automatic index", async ({ store }) => {
    const found = await store.openSession().query({ collection: "Products" }).suggestUsing(builder => builder.byField("name", "milc")).execute();
    assert.deepEqual(found.name.suggestions, ["milk"]);
});

const LIBERAL = { minimumTermFrequency: 1, minimumDocumentFrequency: 1, fields: ["description"] };

async function alike(store, source, options = {}) {
    const session = store.openSession();
    const query = session.query({ indexName: "Products/Texts" }).moreLikeThis(builder => builder.usingDocument(document => document.whereEquals("id()", source)).withOptions({ ...LIBERAL, ...options }));
    return ids(session, await query.all());
}

shopTest("more like a document, the best first", async ({ store }) => {
    const found = await alike(store, "products/1");
    assert.equal(found[0], "products/4");
    assert.equal(found.includes("products/1"), false);
});

for (const [title, source, options, expected] of [
    ["words of several documents", "products/1", { minimumDocumentFrequency: 2 }, ["products/4"]],
    ["all words", "products/5", {}, ["products/3", "products/4", "products/6", "products/7"]],
    ["long words", "products/5", { minimumWordLength: 5 }, ["products/3"]],
    ["short words", "products/5", { maximumWordLength: 4 }, ["products/4", "products/6", "products/7"]],
    ["repeated words", "products/5", { minimumTermFrequency: 2 }, []],
    ["common words left out", "products/5", { maximumDocumentFrequency: 2 }, ["products/3"]],
]) {
    shopTest(`more like this: ${title}`, async ({ store }) => {
        assert.deepEqual((await alike(store, source, options)).sort(), expected);
    });
}

shopTest("more like a text", async ({ store }) => {
    const session = store.openSession();
    const query = session.query({ indexName: "Products/Texts" }).moreLikeThis(builder => builder.usingDocument(JSON.stringify({ description: "goats and rye" })).withOptions(LIBERAL));
    assert.deepEqual(ids(session, await query.all()).sort(), ["products/5", "products/6"]);
});

async function highlighted(session, query, parameters) {
    let seen;
    const found = await query.highlight({ fieldName: "description", fragmentLength: 128, fragmentCount: 3, ...parameters }, highlightings => (seen = highlightings)).all();
    return Object.fromEntries(ids(session, found).map(id => [id, seen.getFragments(id)]));
}

shopTest("highlighting", async ({ store }) => {
    const session = store.openSession();
    const found = await highlighted(session, session.query({ indexName: "Products/Texts" }).search("description", "rye"), {});
    assert.deepEqual(found, { "products/5": ['Dark bread baked from <b style="background:yellow">rye</b>'] });
});

shopTest("highlighting with tags", async ({ store }) => {
    const session = store.openSession();
    const found = await highlighted(session, session.query({ indexName: "Products/Texts" }).search("description", "crisp"), { preTags: ["<i>"], postTags: ["</i>"] });
    assert.deepEqual(found, { "products/1": ["A <i>crisp</i> red apple for pies and cider"], "products/4": ["Juice pressed from <i>crisp</i> red apples"] });
});

shopTest("highlighting of an automatic index", async ({ store }) => {
    const session = store.openSession();
    const found = await highlighted(session, session.query({ collection: "Products" }).search("description", "yellow").waitForNonStaleResults(), { preTags: ["["], postTags: ["]"] });
    assert.deepEqual(found, { "products/2": ["A [yellow] banana, ripe and sweet"] });
});

shopTest("explanations", async ({ store }) => {
    const session = store.openSession();
    let seen;
    const found = await session.query({ indexName: "Products/Texts" }).search("description", "crisp").includeExplanations(explanations => (seen = explanations)).all();
    assert.deepEqual(ids(session, found).sort(), ["products/1", "products/4"]);
    for (const id of ids(session, found)) {
        assert.match(seen.explanations[id].join("\n"), /crisp/);
    }
});

// Around Paris, and around the south-east of France, longitude first.
const NORTH = "POLYGON((1 48, 4 48, 4 51, 1 51, 1 48))";
const SOUTH = "POLYGON((4 43, 8 43, 8 46, 4 46, 4 43))";
const NEAR = "POLYGON((4.8 45.7, 5 45.7, 5 46, 4.8 46, 4.8 45.7))";
const [LYON, LILLE, NICE] = ["suppliers/1", "suppliers/2", "suppliers/3"];
const POINT = new ravendb.PointField("lat", "lng");
const automatic = session => session.query({ collection: "Suppliers" }).waitForNonStaleResults();
const fixed = session => session.query({ indexName: "Suppliers/Places" });

for (const [title, build, expected] of [
    // Paris to Lille is about 203 km, to Lyon about 391, to Nice about 685.
    ["within a radius", s => automatic(s).spatial(POINT, c => c.withinRadius(250, 48.8566, 2.3522)), [LILLE]],
    ["within a larger radius", s => automatic(s).spatial(POINT, c => c.withinRadius(420, 48.8566, 2.3522)), [LYON, LILLE]],
    ["within a radius in miles", s => automatic(s).spatial(POINT, c => c.withinRadius(250, 48.8566, 2.3522, "Miles")), [LYON, LILLE]],
    ["within a shape", s => automatic(s).spatial(POINT, c => c.within(SOUTH)), [LYON, NICE]],
    ["intersects", s => automatic(s).spatial(POINT, c => c.intersects(NORTH)), [LILLE]],
    ["shapes within a shape", s => automatic(s).spatial(new ravendb.WktField("area"), c => c.within(SOUTH)), [LYON, NICE]],
    ["shapes that intersect", s => automatic(s).spatial(new ravendb.WktField("area"), c => c.intersects(NEAR)), [LYON]],
    ["static: within a radius", s => fixed(s).withinRadiusOf("place", 250, 48.8566, 2.3522), [LILLE]],
    ["static: within a radius in miles", s => fixed(s).withinRadiusOf("place", 250, 48.8566, 2.3522, "Miles"), [LYON, LILLE]],
    ["static: within a shape", s => fixed(s).relatesToShape("place", SOUTH, "Within"), [LYON, NICE]],
    ["static: intersects", s => fixed(s).relatesToShape("area", NEAR, "Intersects"), [LYON]],
    ["static: a circle", s => fixed(s).spatial("place", c => c.withinRadius(420, 48.8566, 2.3522)), [LYON, LILLE]],
]) {
    shopTest(`spatial: ${title}`, async ({ store }) => {
        const session = store.openSession();
        assert.deepEqual(ids(session, await build(session).all()).sort(), expected);
    });
}

for (const [title, build, expected] of [
    ["from a point", s => fixed(s).orderByDistance("place", 43.7102, 7.262), [NICE, LYON, LILLE]],
    ["descending", s => fixed(s).orderByDistanceDescending("place", 43.7102, 7.262), [LILLE, LYON, NICE]],
    ["of what a condition finds", s => fixed(s).withinRadiusOf("place", 420, 48.8566, 2.3522).orderByDistance("place", 45.7, 4.8), [LYON, LILLE]],
    ["of an automatic index", s => automatic(s).orderByDistance(POINT, 43.7102, 7.262), [NICE, LYON, LILLE]],
]) {
    shopTest(`order by distance: ${title}`, async ({ store }) => {
        const session = store.openSession();
        assert.deepEqual(ids(session, await build(session).all()), expected);
    });
}
