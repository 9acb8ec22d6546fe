// Queries as text: what is found, in which order, and what is made of it (`cases/rql.json`).

import { ask, read, shopTest, useShop } from "./cases.mjs";

useShop();

for (const expected of read("rql")) {
    shopTest(expected.name, ({ store }) => ask(store, expected));
}
