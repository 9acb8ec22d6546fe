// What Node and Python share: the documents of a small shop, and cases that are plain data (`../cases`).

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test as nodeTest } from "node:test";
import { createDatabase, dropDatabase, newName, newStore, ravendb, url } from "./harness.mjs";

const LIMIT_MS = 120_000;

export function read(name) {
    return JSON.parse(readFileSync(new URL(`../cases/${name}.json`, import.meta.url), "utf8"));
}

export const SHOP = read("shop");

// Writes documents as they stand, in one request.
export async function put(name, documents) {
    const commands = Object.entries(documents).map(([id, document]) => ({ Id: id, Type: "PUT", ChangeVector: null, Document: document }));
    const answer = await fetch(`${url}/databases/${name}/bulk_docs`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ Commands: commands }) });
    assert.equal(answer.status, 201);
}

// A case on a database with the documents of the shop, shared by the cases of a file: they change no document of it. `work({ store, name })`.
const shared = {};
export function shopTest(title, work) {
    nodeTest(title, { timeout: LIMIT_MS }, () => work(shared));
}

// To be called once by a file that has such cases; `prepare` adds what they need beside the documents.
export function useShop(prepare = async () => undefined) {
    before(async () => {
        shared.name = newName();
        shared.store = newStore(shared.name);
        await createDatabase(shared.store, shared.name);
        await put(shared.name, SHOP);
        await prepare(shared.store);
    });
    after(async () => {
        await dropDatabase(shared.store, shared.name);
        shared.store.dispose();
    });
}

// Ids of what a query gave, in its order.
export function ids(session, entities) {
    return entities.map(entity => session.advanced.getDocumentId(entity));
}

// Results of a projection, without what the server and the client say about them.
export function rows(results) {
    return results.map(result => JSON.parse(JSON.stringify(Object.fromEntries(Object.entries(result).filter(([name]) => name !== "@metadata" && name !== "id")))));
}

// Asks as a case of a file says, and compares with what it expects: ids, rows or an error.
export async function ask(store, expected) {
    const session = store.openSession();
    const query = session.advanced.rawQuery(expected.rql).waitForNonStaleResults();
    for (const [name, value] of Object.entries(expected.parameters ?? {})) {
        query.addParameter(name, value);
    }
    if (expected.error) {
        // JavaScript says the case before the pattern in another way.
        const [, flag, pattern] = expected.error.match(/^(\(\?i\))?(.*)$/s);
        await assert.rejects(query.all(), error => new RegExp(pattern, flag ? "i" : "").test(`${error.name} ${error.message}`));
        return;
    }
    const results = await query.all();
    let found = expected.ids ? ids(session, results) : rows(results);
    let wanted = expected.ids ?? expected.rows;
    if (!/order by/i.test(expected.rql)) {
        const sorted = list => [...list].sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
        [found, wanted] = [sorted(found), sorted(wanted)];
    }
    assert.deepEqual(found, wanted);
}

// An index of the application: a class of one of the client's kinds, whose name becomes that of the index.
export function makeIndex(given) {
    const javaScript = given.maps[0].startsWith("map(");
    const kind = javaScript
        ? ravendb.AbstractRawJavaScriptIndexCreationTask
        : given.maps.length > 1 ? ravendb.AbstractCsharpMultiMapIndexCreationTask : ravendb.AbstractCsharpIndexCreationTask;
    const holder = { [given.index]: class extends kind {} };
    const task = new holder[given.index]();
    const fields = Object.entries(given.fields ?? {});
    if (javaScript) {
        task.maps = new Set(given.maps);
        task.fields = Object.fromEntries(fields);
    } else if (given.maps.length > 1) {
        given.maps.forEach(map => task.addMap(map));
    } else {
        task.map = given.maps[0];
    }
    if (given.reduce) {
        task.reduce = given.reduce;
    }
    for (const [name, options] of javaScript ? [] : fields) {
        if (name === "__all_fields") {
            task.storeAllFields(options.storage);
            continue;
        }
        options.storage && task.store(name, options.storage);
        options.indexing && task.index(name, options.indexing);
        options.analyzer && task.analyze(name, options.analyzer);
    }
    if (given.configuration) {
        task.configuration = given.configuration;
    }
    if (given.sources) {
        task.additionalSources = given.sources;
    }
    return task;
}
