// Indexes as the application defines them, in C# and JavaScript, with the client's classes for it (`cases/indexes.json`,
// `cases/map_reduce.json`).

import { ask, makeIndex, read, shopTest, useShop } from "./cases.mjs";

useShop();

for (const file of ["indexes", "map_reduce"]) {
    for (const index of read(file)) {
        // Put by the first case that asks it.
        let there;
        for (const expected of index.queries) {
            shopTest(`${expected.name} (${index.index})`, async ({ store }) => {
                there ??= makeIndex(index).execute(store);
                await there;
                await ask(store, expected);
            });
        }
    }
}
