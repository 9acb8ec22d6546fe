//! `select`: what results are made of.

use std::collections::BTreeSet;

use jackdaw_functions::javascript::Projection as Script;
use jackdaw_rql::tree::{Call, Expression, Projection as Selected, Query, SelectItem};

use crate::error::{Error, Result};
use crate::parameters::Constant;
use crate::plan::Aliases;
use crate::plan::field::{FieldPath, Origin, resolve};

/// What results are made of.
#[derive(Debug)]
pub(crate) enum Projection {
    /// Whole documents, or what a map/reduce index made.
    Results { distinct: bool },
    /// A loaded document in place of each.
    Loaded { number: usize, distinct: bool },
    /// Properties.
    Fields { items: Vec<Item>, distinct: bool },
    /// What a function in JavaScript makes of each.
    Script { script: Script, arguments: Vec<Origin>, looks_elsewhere: bool, distinct: bool },
    /// `select facet(..)`; the arguments are read from the tree.
    Facets,
    /// `select suggest(..)`.
    Suggestions,
}

/// One property of a result.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) name: String,
    pub(crate) value: ItemValue,
    /// Whether the path begins with an alias.
    pub(crate) of_alias: bool,
}

/// What a property of a result is.
#[derive(Debug)]
pub(crate) enum ItemValue {
    Field(Origin, FieldPath),
    /// The document itself, below the results' properties.
    Whole(Origin),
    Id(Origin),
    Constant(Constant),
    Parameter(String),
    /// The value of the compare-exchange key that is the constant or the parameter.
    CompareExchange(Box<ItemValue>),
    /// `key()` of several keys: an object of them, in the order of `group by`.
    Keys(Vec<(String, FieldPath)>),
    /// What a declared function makes of its arguments, under [`CALLED`] in what the script makes.
    Called(Called),
}

/// The property under which a script gives what a declared function made.
pub(crate) const CALLED: &str = "value";

/// A declared function that is called beside fields.
#[derive(Debug)]
pub(crate) struct Called {
    pub(crate) script: Script,
    pub(crate) arguments: Vec<Origin>,
    looks_elsewhere: bool,
}

impl Called {
    /// The call of a function that the query declares; its arguments are fields, values and parameters. `wrap` makes an
    /// expression of the call.
    ///
    /// Errors: unknown aliases, what is no JavaScript.
    pub(crate) fn new(
        tree: &Query<'_>,
        call: &Call<'_>,
        aliases: &Aliases,
        text: &str,
        wrap: impl FnOnce(&str) -> String,
    ) -> Result<Called> {
        let code = wrap(&code_of(call, aliases, text)?);
        let code = format!("return {{ {CALLED}: {code} }};");
        match script(tree, code, aliases, text, false)? {
            Projection::Script { script, arguments, looks_elsewhere, .. } => {
                Ok(Called { script, arguments, looks_elsewhere })
            }
            _ => Err(Error::invalid(text, call.span, "Expected a function here")),
        }
    }
}

impl Projection {
    pub(crate) fn new(tree: &Query<'_>, aliases: &Aliases, text: &str) -> Result<Projection> {
        let Some(select) = &tree.select else { return Ok(Projection::Results { distinct: false }) };
        let distinct = select.distinct;
        let items = match &select.projection {
            Selected::All => return Ok(Projection::Results { distinct }),
            Selected::Object(code) => {
                if aliases.is_empty() {
                    let message =
                        "Use of select function body requires that aliases will be defined, but none had";
                    return Err(Error::invalid(text, code.span, message));
                }
                return script(tree, format!("return {{{}}};", code.text), aliases, text, distinct);
            }
            Selected::Items(items) => items,
        };
        if let [item] = &**items {
            match &item.expression {
                // Alone, a document is the result, whatever it is called.
                Expression::Field(path) if path.rest.is_empty() => match aliases.find(&path.first.text) {
                    Some(Origin::Result) => return Ok(Projection::Results { distinct }),
                    Some(Origin::Loaded(number)) => return Ok(Projection::Loaded { number, distinct }),
                    None => {}
                },
                Expression::Call(call) if declared(tree, call) && item.alias.is_none() => {
                    return of_function(tree, call, aliases, text, distinct);
                }
                _ => {}
            }
        }
        if items.iter().any(|item| is_call(item, "facet")) {
            return all_of(items, "facet", text).map(|()| Projection::Facets);
        }
        if items.iter().any(|item| is_call(item, "suggest")) {
            return all_of(items, "suggest", text).map(|()| Projection::Suggestions);
        }
        let mut seen = BTreeSet::new();
        let items = items.iter().map(|item| {
            let made = Item::new(item, tree, aliases, text)?;
            if !seen.insert(made.name.clone()) {
                let message = format!(
                    "Duplicate alias '{0}' detected. Note: without an alias the name is that of the field; use explicit aliases, such as 'select {0} as Other{0}'",
                    made.name
                );
                return Err(Error::invalid(text, item.expression.span(), message));
            }
            Ok(made)
        });
        Ok(Projection::Fields { items: items.collect::<Result<_>>()?, distinct })
    }

    /// Whether equal results come up once.
    pub(crate) fn is_distinct(&self) -> bool {
        match self {
            Projection::Results { distinct }
            | Projection::Loaded { distinct, .. }
            | Projection::Fields { distinct, .. }
            | Projection::Script { distinct, .. } => *distinct,
            Projection::Facets | Projection::Suggestions => false,
        }
    }

    /// Whether results depend on documents and values other than those found.
    pub(crate) fn looks_elsewhere(&self) -> bool {
        match self {
            Projection::Script { looks_elsewhere, .. } => *looks_elsewhere,
            Projection::Fields { items, .. } => items.iter().any(|item| match &item.value {
                ItemValue::CompareExchange(_) => true,
                ItemValue::Called(called) => called.looks_elsewhere,
                _ => false,
            }),
            _ => false,
        }
    }
}

fn is_call(item: &SelectItem<'_>, name: &str) -> bool {
    matches!(&item.expression, Expression::Call(call) if call.is(name))
}

fn all_of(items: &[SelectItem<'_>], name: &str, text: &str) -> Result<()> {
    match items.iter().find(|item| !is_call(item, name)) {
        None => Ok(()),
        Some(other) => {
            let message = format!("A query with {name}() selects nothing else");
            Err(Error::invalid(text, other.expression.span(), message))
        }
    }
}

/// Whether the query declares the function that is called.
pub(crate) fn declared(tree: &Query<'_>, call: &Call<'_>) -> bool {
    tree.declarations.iter().any(|declaration| declaration.name.text == call.name)
}

/// What scripts know the result by when the query gives it no name.
const UNNAMED: &str = "__result";

fn all(aliases: &Aliases) -> Vec<Origin> {
    std::iter::once(Origin::Result).chain((0..aliases.loads().len()).map(Origin::Loaded)).collect()
}

/// `select f(x, y)`, where `f` is declared.
fn of_function(
    tree: &Query<'_>,
    call: &Call<'_>,
    aliases: &Aliases,
    text: &str,
    distinct: bool,
) -> Result<Projection> {
    let code = format!("return {};", code_of(call, aliases, text)?);
    script(tree, code, aliases, text, distinct)
}

/// A call in JavaScript.
fn code_of(call: &Call<'_>, aliases: &Aliases, text: &str) -> Result<String> {
    let mut arguments = Vec::new();
    for argument in &call.arguments {
        let Expression::Field(path) = &argument.expression else {
            let span = argument.expression.span();
            arguments.push(span.of(text).to_owned());
            continue;
        };
        resolve(path, aliases, text)?;
        let code = path.span.of(text);
        arguments.push(match aliases.find(&path.first.text) {
            None if aliases.source().is_none() => format!("{UNNAMED}.{code}"),
            _ => code.to_owned(),
        });
    }
    Ok(format!("{}({})", call.name, arguments.join(", ")))
}

fn script(
    tree: &Query<'_>,
    code: String,
    aliases: &Aliases,
    text: &str,
    distinct: bool,
) -> Result<Projection> {
    let mut whole = String::new();
    for declaration in &tree.declarations {
        if declaration.body.language != jackdaw_rql::tree::CodeLanguage::JavaScript {
            return Err(Error::NotSupported(
                "declare timeseries: not supported by this version of the server.".to_owned(),
            ));
        }
        let parameters: Vec<&str> = declaration.parameters.iter().map(|name| &*name.text).collect();
        whole += &format!(
            "function {}({}) {{{}}}\n",
            declaration.name.text,
            parameters.join(", "),
            declaration.body.text
        );
    }
    whole += &code;
    let source = aliases.source().unwrap_or(UNNAMED);
    let names: Vec<&str> =
        std::iter::once(source).chain(aliases.loads().iter().map(String::as_str)).collect();
    let script = Script::compile(&whole, &names)
        .map_err(|error| Error::invalid(text, tree.span, format!("Could not parse: {error}")))?;
    let looks_elsewhere = ["load", "cmpxchg", "include"].iter().any(|name| whole.contains(name));
    Ok(Projection::Script { script, arguments: all(aliases), looks_elsewhere, distinct })
}

impl Item {
    fn new(item: &SelectItem<'_>, tree: &Query<'_>, aliases: &Aliases, text: &str) -> Result<Item> {
        let (name, value) = match &item.expression {
            Expression::Field(path) => {
                let (origin, below) = resolve(path, aliases, text)?;
                if below.first().is_none() {
                    (path.first.text.to_string(), ItemValue::Whole(origin))
                } else {
                    (below.text().to_owned(), ItemValue::Field(origin, below))
                }
            }
            Expression::Literal(literal) => {
                (literal.span.of(text).to_owned(), ItemValue::Constant(Constant::of(literal)))
            }
            Expression::Parameter(parameter) => {
                (parameter.name.to_string(), ItemValue::Parameter(parameter.name.to_string()))
            }
            Expression::Call(call) => Item::of_call(call, tree, aliases, text)?,
            Expression::TimeSeries(_) => {
                return Err(Error::NotSupported(
                    "Time series: not supported by this version of the server.".to_owned(),
                ));
            }
            other => {
                return Err(Error::invalid(
                    text,
                    other.span(),
                    "Expected a field, a literal, a parameter or a call in SELECT",
                ));
            }
        };
        let name = item.alias.as_ref().map_or(name, |alias| alias.text.to_string());
        let of_alias =
            matches!(&item.expression, Expression::Field(path) if aliases.find(&path.first.text).is_some());
        Ok(Item { name, value, of_alias })
    }

    fn of_call(
        call: &Call<'_>,
        tree: &Query<'_>,
        aliases: &Aliases,
        text: &str,
    ) -> Result<(String, ItemValue)> {
        if declared(tree, call) {
            let called = Called::new(tree, call, aliases, text, str::to_owned)?;
            return Ok((call.name.to_string(), ItemValue::Called(called)));
        }
        let name = call.span.of(text).to_owned();
        if call.is("id") {
            return Ok((name, ItemValue::Id(aliases.of_id_call(call, text)?)));
        }
        if call.is("cmpxchg") {
            let key = match call.arguments.first().map(|argument| &argument.expression) {
                Some(Expression::Literal(literal)) => ItemValue::Constant(Constant::of(literal)),
                Some(Expression::Parameter(parameter)) => ItemValue::Parameter(parameter.name.to_string()),
                _ => return Err(Error::invalid(text, call.span, "cmpxchg() expects a key")),
            };
            return Ok((name, ItemValue::CompareExchange(Box::new(key))));
        }
        if ["counter", "counterRaw", "timeseries"].iter().any(|name| call.is(name)) {
            return Err(Error::NotSupported(format!(
                "{}(): not supported by this version of the server.",
                call.name
            )));
        }
        if !tree.group_by.is_empty() {
            return grouped(call, tree, aliases, text);
        }
        let message = match ["key", "count", "sum", "array"].iter().any(|name| call.is(name)) {
            true => format!("'{}()' can be used in a query with GROUP BY alone", call.name),
            false => format!("Unknown method call in SELECT clause: '{}' method", call.name),
        };
        Err(Error::invalid(text, call.span, message))
    }
}

/// `key()`, `count()` and `sum(f)`: fields of what the grouping made.
fn grouped(call: &Call<'_>, tree: &Query<'_>, aliases: &Aliases, text: &str) -> Result<(String, ItemValue)> {
    let field = |name: &str| {
        let path = jackdaw_rql::tree::Path::new(name.to_owned());
        (name.to_owned(), ItemValue::Field(Origin::Result, FieldPath::new(&path)))
    };
    if call.is("count") {
        return Ok(field("Count"));
    }
    let argument = call.arguments.first().map(|argument| &argument.expression);
    if call.is("sum") {
        return match argument {
            Some(Expression::Field(path)) => Ok(field(resolve(path, aliases, text)?.1.text())),
            _ => Err(Error::invalid(text, call.span, "sum() expects a field")),
        };
    }
    if call.is("key") {
        let path_of = |key: &jackdaw_rql::tree::GroupKey<'_>| match &key.expression {
            Expression::Field(path) => Ok(resolve(path, aliases, text)?.1.text().to_owned()),
            Expression::Call(call) => match call.arguments.first().map(|argument| &argument.expression) {
                Some(Expression::Field(path)) => Ok(resolve(path, aliases, text)?.1.text().to_owned()),
                _ => Err(Error::invalid(text, call.span, "array() expects a field")),
            },
            other => Err(Error::invalid(text, other.span(), "GROUP BY expects a field")),
        };
        if let [key] = &*tree.group_by {
            return Ok(field(&path_of(key)?));
        }
        let keys = tree.group_by.iter().map(|key| {
            let name = path_of(key)?;
            let path = FieldPath::new(&jackdaw_rql::tree::Path::new(name.clone()));
            Ok((name, path))
        });
        return Ok(("Key".to_owned(), ItemValue::Keys(keys.collect::<Result<_>>()?)));
    }
    Err(Error::invalid(
        text,
        call.span,
        format!("Unknown method call in SELECT clause: '{}' method", call.name),
    ))
}
