// Runs once in each realm, before any script: builds what scripts may call, and freezes everything that scripts share, so that none leaves
// anything behind for another. `host` holds the functions that are written in Rust; what is returned is called from there.
(function (host) {
    'use strict';
    const source = Symbol('source');
    const { defineProperty, freeze, getOwnPropertyDescriptor, getPrototypeOf } = Object;
    const { ownKeys } = Reflect;
    const hasOwn = Object.hasOwn;
    const dateValue = Date.prototype.getTime;
    const refuse = (name) => () => { throw new TypeError(name + ' is not available to scripts'); };

    // Text that becomes code could declare names that outlive the script.
    const constructors = [
        function () {}, function* () {}, async function () {}, async function* () {},
    ].map(getPrototypeOf);
    for (const prototype of constructors)
        defineProperty(prototype, 'constructor', { value: refuse('Function'), writable: false, configurable: false });
    for (const name of ['eval', 'Function', 'Promise', 'queueMicrotask', 'WeakRef', 'FinalizationRegistry', 'performance'])
        if (hasOwn(globalThis, name)) delete globalThis[name];
    globalThis.eval = refuse('eval');
    globalThis.Function = refuse('Function');
    // A document may have a property of this name.
    delete Object.prototype.__proto__;

    // ---- times are those of UTC, wherever the server stands ----
    const PlainDate = Date;
    for (const part of ['FullYear', 'Month', 'Date', 'Day', 'Hours', 'Minutes', 'Seconds', 'Milliseconds'])
        for (const verb of ['get', 'set'])
            if (hasOwn(PlainDate.prototype, verb + part)) PlainDate.prototype[verb + part] = PlainDate.prototype[verb + 'UTC' + part];
    PlainDate.prototype.getTimezoneOffset = () => 0;
    PlainDate.prototype.toString = function toString() {
        return isNaN(dateValue.call(this)) ? 'Invalid Date' : this.toUTCString().replace(',', '');
    };
    const withZone = (value) => (typeof value === 'string' && /^[-+]?\d{4,6}-\d\d-\d\dT\d\d:\d\d(:\d\d([.,]\d+)?)?$/.test(value) ? value + 'Z' : value);
    const { UTC } = PlainDate;
    const parse = PlainDate.parse;
    PlainDate.parse = (value) => parse(withZone(String(value)));
    const UtcDate = new Proxy(PlainDate, {
        construct: (target, given, made) =>
            Reflect.construct(target, given.length > 1 ? [UTC(...given)] : given.length === 1 ? [withZone(given[0])] : [], made),
        apply: () => new PlainDate().toString(),
    });
    defineProperty(PlainDate.prototype, 'constructor', { value: UtcDate, writable: true, configurable: true });
    defineProperty(globalThis, 'Date', { value: UtcDate, writable: true, configurable: true });

    // ---- what scripts call ----
    const node = (value) => (value !== null && typeof value === 'object' && hasOwn(value, source) ? value[source] : undefined);
    const text = (value, what) => {
        if (typeof value !== 'string') throw new TypeError(what);
        return value;
    };
    const optional = (value, what) => (value === undefined || value === null ? undefined : text(value, what));
    const loadOne = (id, collection, tracked) => {
        if (id === null || id === undefined) return null;
        return host.load(text(id, 'load(id | ids) must be called with a single string or array argument'),
            optional(collection, 'load(id, collection): the collection must be a string'), tracked, shared);
    };
    const loadAny = (id, collection, tracked) =>
        Array.isArray(id) ? id.map((each) => loadOne(each, collection, tracked)) : loadOne(id, collection, tracked);
    const follow = (value, path) => {
        const parts = text(path, 'loadPath(document, path): the path must be a string').split('.');
        let all = [value];
        for (const part of parts) {
            const name = part.endsWith('[]') ? part.slice(0, -2) : part;
            all = all.flatMap((each) => (each === null || each === undefined ? [] : [each[name]])).flat();
        }
        return all;
    };
    const getMetadata = (document) => {
        const at = node(document);
        const known = at === undefined ? undefined : host.metadata(at);
        if (known === undefined) throw new TypeError('getMetadata(doc) must be called with a single entity argument');
        let metadata = document['@metadata'];
        if (metadata === null || typeof metadata !== 'object') {
            metadata = {};
            document['@metadata'] = metadata;
        }
        for (const name of ownKeys(known)) if (!hasOwn(metadata, name)) metadata[name] = known[name];
        return metadata;
    };
    const shown = (value) => {
        if (typeof value === 'string') return value;
        if (value === undefined || typeof value === 'function' || typeof value === 'symbol') return String(value);
        if (typeof value === 'bigint') return value.toString();
        return JSON.stringify(value);
    };
    const output = (value) => host.output(wellFormed(shown(value)));
    const fold = (choose) => (left, right) => {
        if (left === null || left === undefined || right === null || right === undefined) return null;
        return choose(left, right) ? left : right;
    };
    const two = (value) => String(Math.trunc(value)).padStart(2, '0');
    const timeSpan = (ticks) => host.timeSpan(ticks);
    const compare = {
        Equal: (a, b) => a === b, NotEqual: (a, b) => a !== b, LessThan: (a, b) => a < b, LessThanOrEqual: (a, b) => a <= b,
        GreaterThan: (a, b) => a > b, GreaterThanOrEqual: (a, b) => a >= b,
    };
    const ofDate = (value, which) => {
        const date = value instanceof Date ? value : typeof value === 'string' ? new Date(value) : undefined;
        if (date === undefined || isNaN(date)) throw new TypeError(`compareDates(date1, date2, binaryOp): ${which} must be a date or the text of one`);
        return dateValue.call(date);
    };
    const notSupported = (name, feature) => () => host.notSupported(name, feature);
    const functions = {
        load: (id, collection) => loadAny(id, collection, true),
        loadPath: (document, path) => {
            const ids = follow(document, path);
            return path.includes('[]') || ids.length > 1 ? ids.map((id) => loadOne(id, undefined, true)) : ids.length === 0 ? null : loadOne(ids[0], undefined, true);
        },
        put: (id, document, changeVector) => {
            if (document === null || typeof document !== 'object' || Array.isArray(document))
                throw new TypeError(`Created document must be a valid object which is not null or empty. Document ID: '${id}'.`);
            return host.put(optional(id, 'put(id, doc, changeVector): the id must be a string') ?? '', document,
                optional(changeVector, `The change vector must be a string or null. Document ID: '${id}'.`), shared);
        },
        del: (id, changeVector) => host.del(text(id, 'delete(id, changeVector) id argument must be a string'),
            optional(changeVector, 'delete(id, changeVector): the change vector must be a string')),
        id: (document) => {
            const at = node(document);
            return (at === undefined ? undefined : host.id(at)) ?? null;
        },
        getMetadata,
        metadataFor: getMetadata,
        lastModified: (document) => {
            const at = node(document);
            return at === undefined ? undefined : host.lastModified(at);
        },
        cmpxchg: (key) => host.cmpxchg(text(key, 'cmpxchg(key) must be called with a single string argument'), shared),
        include: (id) => { for (const each of [id].flat()) if (typeof each === 'string') host.include('document', each); },
        includes: {
            document: (id) => { for (const each of [id].flat()) if (typeof each === 'string') host.include('document', each); },
            cmpxchg: (key) => { for (const each of [key].flat()) if (typeof each === 'string') host.include('cmpxchg', each); },
            revisions: notSupported('includes.revisions', 'Revisions'),
        },
        output,
        console: { log: output, info: output, debug: output, warn: output, error: output },
        noTracking: { load: (id, collection) => loadAny(id, collection, false) },
        spatial: {
            distance: (latitude1, longitude1, latitude2, longitude2, units) =>
                host.distance(+latitude1, +longitude1, +latitude2, +longitude2, String(units ?? 'kilometers').toLowerCase().startsWith('mile')),
        },
        startsWith: (value, start) => String(value ?? '').toLowerCase().startsWith(String(start).toLowerCase()),
        endsWith: (value, end) => String(value ?? '').toLowerCase().endsWith(String(end).toLowerCase()),
        regex: (value, pattern) => new RegExp(pattern, 'i').test(String(value ?? '')),
        Raven_Min: fold((left, right) => left <= right),
        Raven_Max: fold((left, right) => left >= right),
        scalarToRawString: (document, read) => read(document),
        toStringWithFormat: (value, ...rest) => {
            const format = rest.find((each) => typeof each === 'string');
            if (value === null || value === undefined) return null;
            if (value instanceof Date) return format === undefined ? value.toISOString() : host.formatDate(dateValue.call(value), format);
            if (typeof value === 'number') return format === undefined ? String(value) : host.formatNumber(value, format);
            return String(value);
        },
        convertJsTimeToTimeSpanString: (milliseconds) => timeSpan(Math.trunc(+milliseconds * 10000)),
        convertToTimeSpanString: (...parts) => {
            const [days, hours, minutes, seconds, milliseconds] = parts.length <= 3
                ? [0, parts[0], parts[1] ?? 0, parts[2] ?? 0, 0] : [...parts, 0];
            return parts.length === 1 ? timeSpan(Math.trunc(+parts[0]))
                : timeSpan(Math.trunc(((((+days * 24 + +hours) * 60 + +minutes) * 60 + +seconds) * 1000 + +milliseconds) * 10000));
        },
        compareDates: (left, right, operation) => {
            const [a, b] = [ofDate(left, 'date1'), ofDate(right, 'date2')];
            if (operation === undefined) return a - b;
            if (!hasOwn(compare, operation)) throw new TypeError(`compareDates(date1, date2, binaryOp): there is no operation '${operation}'`);
            return compare[operation](a, b);
        },
        counter: notSupported('counter', 'Counters'),
        counterRaw: notSupported('counterRaw', 'Counters'),
        incrementCounter: notSupported('incrementCounter', 'Counters'),
        deleteCounter: notSupported('deleteCounter', 'Counters'),
        counterNamesFor: notSupported('counterNamesFor', 'Counters'),
        timeseries: notSupported('timeseries', 'Time series'),
        timeSeriesNamesFor: notSupported('timeSeriesNamesFor', 'Time series'),
        attachmentsFor: notSupported('attachmentsFor', 'Attachments'),
        loadAttachment: notSupported('loadAttachment', 'Attachments'),
        loadAttachments: notSupported('loadAttachments', 'Attachments'),
    };
    for (const name of ownKeys(functions))
        defineProperty(globalThis, name, { value: functions[name], writable: true, configurable: true, enumerable: false });
    defineProperty(String.prototype, 'format', {
        value: function format(...values) {
            return String(this).replace(/\{(\d+)\}/g, (all, at) => (at in values ? String(values[at]) : all));
        },
        writable: true, configurable: true, enumerable: false,
    });

    // ---- definitions of indexes ----
    const asArray = (value) => (Array.isArray(value) ? value : [value]);
    const createField = (name, value, options) => ({ $name: name, $value: value, $options: options ?? {} });
    const createSpatialField = (first, second) =>
        ({ $spatial: second === undefined ? (first === undefined ? null : first) : [first, second] });
    const boost = (value, by) => ({ $value: value, $boost: by });
    // A definition runs with functions of its own, which remember what it defines.
    const define = () => {
        const maps = [];
        const defined = [];
        const map = (...given) => {
            const run = given.pop();
            if (typeof run !== 'function') throw new TypeError('map(collection, function): the function is missing');
            maps.push({ collections: given.length === 0 ? undefined : asArray(given[0]).map((name) => String(name).toLowerCase()), run });
            defined.push(run);
        };
        const groupBy = (keyOf) => ({
            aggregate: (run) => {
                defined.push((entries) => {
                    const groups = new Map();
                    for (const entry of entries) {
                        const key = keyOf(entry);
                        const name = JSON.stringify(key) ?? 'undefined';
                        const group = groups.get(name);
                        if (group === undefined) groups.set(name, { key, values: [entry] });
                        else group.values.push(entry);
                    }
                    const results = [];
                    for (const group of groups.values()) results.push(run(group));
                    return results;
                });
            },
        });
        const many = ([collection, document]) => {
            const name = String(collection).toLowerCase();
            return maps.filter((each) => each.collections === undefined || each.collections.includes(name)).map((each) => each.run(document));
        };
        // Runs the maps of a document's collection.
        defined.many = many;
        return { defined, map, groupBy, timeSeries: { map }, counters: { map }, createField, createSpatialField, boost };
    };

    // ---- reading from nothing: `a.b` where `a` is null or undefined is null, and calls of it do nothing ----
    const nothing = new Proxy(freeze({}), { get: (_, name) => (name === 'length' ? 0 : null), set: () => false });
    const calls = {
        map: () => [], filter: () => [], reverse: () => [], concat: (...values) => values.flat(), some: () => false, includes: () => false,
        every: () => true, reduce: (_, first) => first ?? null, reduceRight: (_, first) => first ?? null,
    };
    const none = () => undefined;
    const callOfNothing = new Proxy(freeze({}), { get: (_, name) => (hasOwn(calls, name) ? calls[name] : none), set: () => false });
    for (const name of ownKeys(calls)) freeze(calls[name]);

    const wellFormed = String.prototype.toWellFormed ? (value) => String.prototype.toWellFormed.call(value) : (value) => value;

    // A result of which reading what is not there ends the run: what is there are the properties of `known`.
    const strict = (result, known) => new Proxy(result, {
        get: (_, name) => {
            if (typeof name === 'string' && name !== '@metadata' && !hasOwn(known, name)) host.missing(name);
            return result[name];
        },
    });

    // Given to Rust, with every call that makes objects or reads them.
    const shared = {
        source, nothing, callOfNothing, define, strict,
        date: PlainDate,
        // Of what only pretends to be a date there is none.
        dateValue: (value) => { try { return dateValue.call(value); } catch { return undefined; } },
        wellFormed, shown: (value) => wellFormed(shown(value) ?? 'undefined'),
    };

    // ---- freezing ----
    // A frozen prototype would forbid objects to have properties of their own by its names; accessors that define them do not.
    const allowOverriding = (prototype) => {
        for (const name of ownKeys(prototype)) {
            const descriptor = getOwnPropertyDescriptor(prototype, name);
            if (!descriptor.configurable || !('value' in descriptor)) continue;
            const { value } = descriptor;
            defineProperty(prototype, name, {
                get() { return value; },
                set(own) {
                    if (this === prototype) throw new TypeError(`'${String(name)}' of a shared object cannot be changed`);
                    defineProperty(this, name, { value: own, writable: true, enumerable: true, configurable: true });
                },
                enumerable: false, configurable: false,
            });
        }
    };
    allowOverriding(Object.prototype);
    for (const error of [Error, TypeError, RangeError, SyntaxError, ReferenceError, EvalError, URIError])
        allowOverriding(error.prototype);
    const seen = new Set();
    const freezeAll = (value) => {
        const waiting = [value];
        while (waiting.length > 0) {
            const next = waiting.pop();
            if (next === null || (typeof next !== 'object' && typeof next !== 'function') || seen.has(next)) continue;
            seen.add(next);
            waiting.push(getPrototypeOf(next));
            for (const name of ownKeys(next)) {
                const { value, get, set } = getOwnPropertyDescriptor(next, name);
                waiting.push(value, get, set);
            }
            freeze(next);
        }
    };
    // A name that nobody declared is undefined when it is read, as index functions in the wild expect; assigning to it stays an error.
    Object.setPrototypeOf(globalThis, new Proxy(freeze(Object.create(Object.prototype)), { get: () => undefined }));
    // What is reached through syntax alone.
    const hidden = [
        ...constructors, ...constructors.map((prototype) => prototype.prototype), [][Symbol.iterator](), ''[Symbol.iterator](), new Map()[Symbol.iterator](), new Set()[Symbol.iterator](),
        'a'.matchAll(/a/g), (function* () {})(), (async function* () {})(), (async function () {})(), functions, calls, none, shared,
    ];
    hidden.forEach(freezeAll);
    freezeAll(globalThis);
    return shared;
})
