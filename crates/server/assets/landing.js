// The landing page: databases, their collections, documents, one document. Everything that comes from the server is put in place as text,
// never as HTML.
"use strict";

const PAGE_SIZE = 25;
const main = document.getElementById("main");
const trail = document.getElementById("trail");

// An element with attributes and children; strings become text.
function element(name, attributes, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
        if (key === "onclick" || key === "onsubmit") {
            made[key] = value;
        } else {
            made.setAttribute(key, value);
        }
    }
    made.append(...children.filter((child) => child !== null).map((child) => (child instanceof Node ? child : String(child))));
    return made;
}

const path = (...parts) => "#/" + parts.map(encodeURIComponent).join("/");
const link = (text, ...parts) => element("a", { href: path(...parts) }, text);
const ofDatabase = (name, rest) => `/databases/${encodeURIComponent(name)}${rest}`;

async function request(method, url, body) {
    const response = await fetch(url, { method, body: body === undefined ? undefined : JSON.stringify(body) });
    const text = await response.text();
    if (!response.ok) {
        let message = `${response.status} ${response.statusText}`;
        try {
            message = JSON.parse(text).Message || message;
        } catch {
            // No JSON: the status is all there is to say.
        }
        throw new Error(message);
    }
    return text === "" ? null : JSON.parse(text);
}

function table(heads, rows) {
    const head = element("tr", {}, ...heads.map((text) => element("th", {}, text)));
    return element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows));
}

const row = (...cells) => element("tr", {}, ...cells.map((cell) => (cell.tagName === "TD" ? cell : element("td", {}, cell))));
const cell = (kind, text) => element("td", { class: kind }, text);

async function showDatabases() {
    const { Databases: databases } = await request("GET", "/databases");
    const rows = databases.map((one) =>
        row(
            one.Disabled ? one.Name : link(one.Name, "db", one.Name),
            one.Disabled ? "disabled" : one.DocumentsCount === null ? "not loaded" : `${one.DocumentsCount} documents`,
            one.TotalSize.HumaneSize,
        ),
    );
    const name = element("input", { placeholder: "name", required: "", "aria-label": "name of the new database" });
    const create = element("form", { onsubmit: (event) => {
        event.preventDefault();
        act(async () => {
            await request("PUT", `/admin/databases?name=${encodeURIComponent(name.value)}`, { DatabaseName: name.value });
            location.hash = path("db", name.value);
        });
    } }, name, " ", element("button", {}, "New database"));
    const list = rows.length > 0 ? table(["Database", "", "On disk"], rows) : element("p", {}, "There is no database yet.");
    const hasSample = databases.some((one) => one.Name.toLowerCase() === "northwind");
    const sample = hasSample ? null : element("p", {}, element("button", { onclick: () => act(addSample) }, "Add the sample database Northwind"));
    return [list, element("p", {}, create), sample];
}

async function addSample() {
    await request("PUT", "/admin/databases?name=Northwind", { DatabaseName: "Northwind" });
    await request("POST", ofDatabase("Northwind", "/studio/sample-data"));
    location.hash = path("db", "Northwind");
}

async function showDatabase(database) {
    const { CountOfDocuments: count, Collections: collections } = await request("GET", ofDatabase(database, "/collections/stats"));
    const names = Object.keys(collections).sort((a, b) => a.localeCompare(b));
    const rows = names.map((name) => row(link(name, "db", database, "in", name), cell("number", collections[name])));
    const all = row(link("All documents", "db", database, "all"), cell("number", count));
    const sample = count > 0 ? null : element("p", {}, element("button", { onclick: () => act(async () => {
        await request("POST", ofDatabase(database, "/studio/sample-data"));
        await show();
    }) }, "Load sample data"));
    return [table(["Collection", "Documents"], [all, ...rows]), sample];
}

async function showDocuments(database, collection, start) {
    const range = `start=${start}&pageSize=${PAGE_SIZE}`;
    const url = collection === null ? `/docs?${range}` : `/collections/docs?name=${encodeURIComponent(collection)}&${range}`;
    const { Results: documents } = await request("GET", ofDatabase(database, url));
    const rows = documents.map((one) => {
        const { "@metadata": metadata, ...content } = one;
        const text = JSON.stringify(content);
        return row(
            link(metadata["@id"], "db", database, "doc", metadata["@id"]),
            cell("preview", text.length > 200 ? text.slice(0, 200) + "…" : text),
            metadata["@last-modified"].slice(0, 19).replace("T", " "),
        );
    });
    const where = collection === null ? ["db", database, "all"] : ["db", database, "in", collection];
    const pager = element("p", { class: "pager" },
        start > 0 ? link("← newer", ...where, Math.max(0, start - PAGE_SIZE)) : null,
        documents.length === PAGE_SIZE ? link("older →", ...where, start + PAGE_SIZE) : null);
    return [rows.length > 0 ? table(["Id", "Content", "Modified"], rows) : element("p", {}, "No documents here."), pager];
}

async function showDocument(database, id) {
    const { Results: [found] } = await request("GET", ofDatabase(database, `/docs?id=${encodeURIComponent(id)}`));
    return [element("h2", {}, id), element("pre", {}, JSON.stringify(found, null, 2))];
}

async function act(work) {
    try {
        await work();
    } catch (error) {
        main.append(element("p", { class: "error" }, error.message));
    }
}

async function show() {
    const parts = location.hash.replace(/^#\/?/, "").split("/").filter((part) => part !== "").map(decodeURIComponent);
    const [, database, what, name, start] = parts;
    const steps = [];
    if (database !== undefined) {
        steps.push(link(database, "db", database));
    }
    if (what === "in") {
        steps.push(link(name, "db", database, "in", name));
    }
    trail.replaceChildren(...steps.flatMap((step) => [" / ", step]));
    try {
        const content = await (database === undefined ? showDatabases()
            : what === "doc" ? showDocument(database, name)
            : what === "in" ? showDocuments(database, name, Number(start) || 0)
            : what === "all" ? showDocuments(database, null, Number(name) || 0)
            : showDatabase(database));
        main.replaceChildren(...content.filter((part) => part !== null));
    } catch (error) {
        main.replaceChildren(element("p", { class: "error" }, error.message));
    }
}

window.addEventListener("hashchange", show);
show();
