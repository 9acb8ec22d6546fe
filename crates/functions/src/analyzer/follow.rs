//! Follows the statements of an analyzer's methods, with symbols for what only a run would know.

use std::collections::HashMap;

use tree_sitter::Node;

use super::class::{Class, last_name, variables};
use super::{Analyzer, Tokenizer, lucene};
use crate::error::CompileError;
use crate::linq::{named, unescape};

/// Expressions and calls may stand in each other this deep.
const DEPTH_MAX: u32 = 64;
/// Steps that following may take: methods that call each other several times could take very many.
const STEPS_MAX: u32 = 20_000;

/// A set of words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Words {
    pub(super) texts: Vec<String>,
    /// Whether the set itself ignores case; `None` for a set that does not know.
    pub(super) ignores_case: Option<bool>,
}

/// What an expression is, as far as it matters to an analyzer.
#[derive(Clone, Debug)]
pub(super) enum Value {
    /// The text to be analyzed.
    Reader,
    /// The name of the field, which nothing may depend on.
    FieldName,
    /// A tokenizer, with the filters behind it.
    Stream(Analyzer),
    /// An analyzer of Lucene's or RavenDB's.
    Analyzer(Analyzer),
    Words(Words),
    Text(String),
    Number(i64),
    Bool(bool),
    /// A version of Lucene in which everything is as it is here.
    Version,
    Null,
    /// An object of a class of one's own that only holds things: saved streams.
    Holder(HashMap<String, Value>),
}

impl Value {
    /// What it is, in errors.
    pub(super) fn describe(&self) -> &'static str {
        match self {
            Value::Reader => "the reader",
            Value::FieldName => "the name of the field",
            Value::Stream(_) => "a token stream",
            Value::Analyzer(_) => "an analyzer",
            Value::Words(_) => "words",
            Value::Text(_) => "a text",
            Value::Number(_) => "a number",
            Value::Bool(_) => "a boolean",
            Value::Version => "a version",
            Value::Null => "null",
            Value::Holder(_) => "an object",
        }
    }
}

type Follow<T> = Result<T, CompileError>;

/// One way through an analyzer.
pub(super) struct Following<'c, 's> {
    class: &'c Class<'s>,
    /// What `base.TokenStream` gives.
    pub(super) base: Option<Analyzer>,
    /// Variables of the method that is followed, and its parameters.
    scope: HashMap<String, Value>,
    /// Fields that were assigned.
    fields: HashMap<String, Value>,
    depth: u32,
    steps: u32,
}

impl<'c, 's> Following<'c, 's> {
    pub(super) fn new(class: &'c Class<'s>) -> Following<'c, 's> {
        let (scope, fields) = (HashMap::new(), HashMap::new());
        Following { class, base: None, scope, fields, depth: 0, steps: 0 }
    }

    pub(super) fn declare(&mut self, name: &str, value: Value) {
        self.scope.insert(name.to_owned(), value);
    }

    fn text(&self, node: Node<'_>) -> &'s str {
        self.class.syntax.text_of(node)
    }

    fn error<T>(&self, node: Node<'_>, construct: &str, message: String) -> Follow<T> {
        Err(self.class.syntax.error(node, construct, message))
    }

    fn unsupported<T>(&self, node: Node<'_>, what: &str) -> Follow<T> {
        let few: String =
            self.text(node).split_whitespace().collect::<Vec<_>>().join(" ").chars().take(60).collect();
        self.error(node, what, format!("{what} is not supported in an analyzer: `{few}`"))
    }

    /// Counts a step into something; [`Following::leave`] follows.
    fn enter(&mut self, node: Node<'_>) -> Follow<()> {
        self.depth += 1;
        self.steps += 1;
        if self.depth > DEPTH_MAX || self.steps > STEPS_MAX {
            return self.error(node, "", "the analyzer is nested too deeply, or calls itself".to_owned());
        }
        Ok(())
    }

    fn leave(&mut self) {
        self.depth -= 1;
    }

    // ---- methods and statements ----

    /// What a method of the class returns.
    pub(super) fn call(&mut self, method: Node<'s>, arguments: Vec<Value>) -> Follow<Value> {
        self.enter(method)?;
        let parameters = method.child_by_field_name("parameters").map(named).unwrap_or_default();
        if parameters.len() != arguments.len() {
            let message =
                format!("{} arguments are given to a method of {}", arguments.len(), parameters.len());
            return self.error(method, "call", message);
        }
        let mut scope = HashMap::new();
        for (parameter, value) in parameters.into_iter().zip(arguments) {
            let Some(name) = parameter.child_by_field_name("name") else {
                return self.unsupported(parameter, "such a parameter");
            };
            scope.insert(self.text(name).to_owned(), value);
        }
        let outer = std::mem::replace(&mut self.scope, scope);
        let result = match method.child_by_field_name("body") {
            Some(body) if body.kind() == "arrow_expression_clause" => match named(body)[..] {
                [value] => self.value(value),
                _ => self.unsupported(body, "such a body"),
            },
            Some(body) => match self.block(body)? {
                Some(value) => Ok(value),
                None => {
                    self.error(method, "return", "not all ways through the method return a value".to_owned())
                }
            },
            None => self.unsupported(method, "a method without a body"),
        };
        self.scope = outer;
        self.leave();
        result
    }

    /// Follows the body of the constructor.
    pub(super) fn run_constructor(&mut self, body: Node<'s>) -> Follow<()> {
        if body.kind() == "arrow_expression_clause" {
            return match named(body)[..] {
                [expression] => self.effect(expression),
                _ => self.unsupported(body, "such a body"),
            };
        }
        match self.block(body)? {
            None => Ok(()),
            Some(_) => self.unsupported(body, "a constructor that returns something"),
        }
    }

    /// Follows statements; what they return, if they do.
    fn block(&mut self, block: Node<'s>) -> Follow<Option<Value>> {
        for statement in named(block) {
            if let Some(value) = self.statement(statement)? {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    fn statement(&mut self, statement: Node<'s>) -> Follow<Option<Value>> {
        match statement.kind() {
            "return_statement" => match named(statement)[..] {
                [value] => Ok(Some(self.value(value)?)),
                _ => self.unsupported(statement, "a return without a value"),
            },
            "local_declaration_statement" => {
                for declaration in
                    named(statement).into_iter().filter(|part| part.kind() == "variable_declaration")
                {
                    for variable in variables(declaration) {
                        let Some(value) = variable.value else { continue };
                        let value = self.value(value)?;
                        self.declare(self.text(variable.name), value);
                    }
                }
                Ok(None)
            }
            "expression_statement" => {
                named(statement).into_iter().try_for_each(|expression| self.effect(expression))?;
                Ok(None)
            }
            "block" => self.block(statement),
            "empty_statement" => Ok(None),
            "if_statement" => self.saved_streams(statement),
            kind => self.unsupported(statement, &format!("a {}", kind.replace('_', " "))),
        }
    }

    /// `if (streams == null) { make them } else { streams.Source.Reset(reader); }`: what is made the first time is what there is every time.
    fn saved_streams(&mut self, statement: Node<'s>) -> Follow<Option<Value>> {
        let condition = statement.child_by_field_name("condition");
        let (Some(condition), Some(made)) = (condition, statement.child_by_field_name("consequence")) else {
            return self.unsupported(statement, "an if statement");
        };
        let is_null_check = match condition.kind() {
            "binary_expression" => {
                condition.child_by_field_name("operator").is_some_and(|operator| self.text(operator) == "==")
                    && condition
                        .child_by_field_name("right")
                        .is_some_and(|right| right.kind() == "null_literal")
            }
            "is_pattern_expression" => {
                condition.child_by_field_name("pattern").is_some_and(|pattern| self.text(pattern) == "null")
            }
            _ => false,
        };
        let left =
            condition.child_by_field_name("left").or_else(|| condition.child_by_field_name("expression"));
        let (true, Some(left)) = (is_null_check, left) else {
            return self.unsupported(statement, "an if statement");
        };
        if !matches!(self.value(left)?, Value::Null) {
            return self.unsupported(statement, "an if statement");
        }
        if let Some(again) = statement.child_by_field_name("alternative") {
            let statements = if again.kind() == "block" { named(again) } else { vec![again] };
            for each in statements {
                let is_reset = each.kind() == "expression_statement"
                    && named(each).first().is_some_and(|call| {
                        call.kind() == "invocation_expression"
                            && call
                                .child_by_field_name("function")
                                .is_some_and(|function| last_name(self.text(function)) == "Reset")
                    });
                if !is_reset {
                    return self.unsupported(each, "anything but a reset of saved streams");
                }
            }
        }
        self.statement(made)
    }

    /// An expression that is a statement.
    fn effect(&mut self, expression: Node<'s>) -> Follow<()> {
        match expression.kind() {
            "assignment_expression" => self.assign(expression),
            "invocation_expression" => {
                let function =
                    expression.child_by_field_name("function").map_or("", |function| self.text(function));
                // It lets Lucene look whether a class derived from this one overrides what it must.
                if last_name(function) == "SetOverridesTokenStreamMethod" {
                    return Ok(());
                }
                self.unsupported(expression, "a call whose result is not used")
            }
            _ => self.unsupported(expression, "such a statement"),
        }
    }

    fn assign(&mut self, node: Node<'s>) -> Follow<()> {
        let is_plain =
            node.child_by_field_name("operator").is_some_and(|operator| self.text(operator) == "=");
        let (Some(left), Some(right), true) =
            (node.child_by_field_name("left"), node.child_by_field_name("right"), is_plain)
        else {
            return self.unsupported(node, "such an assignment");
        };
        let value = self.value(right)?;
        match left.kind() {
            "identifier" => self.assign_name(left, value),
            "member_access_expression" => {
                let (Some(target), Some(member)) =
                    (left.child_by_field_name("expression"), left.child_by_field_name("name"))
                else {
                    return self.unsupported(left, "such an assignment");
                };
                if matches!(target.kind(), "this" | "this_expression" | "base" | "base_expression") {
                    return self.assign_name(member, value);
                }
                let (name, member) = (self.text(target), self.text(member));
                let held = self.scope.get_mut(name).or_else(|| self.fields.get_mut(name));
                match (held, value) {
                    (Some(Value::Holder(members)), value) => {
                        members.insert(member.to_owned(), value);
                        Ok(())
                    }
                    (Some(Value::Stream(stream)), Value::Number(number)) if member == "MaxTokenLength" => {
                        if limit(stream, number) {
                            Ok(())
                        } else {
                            self.unsupported(node, "such a limit")
                        }
                    }
                    _ => self.unsupported(node, "such an assignment"),
                }
            }
            _ => self.unsupported(node, "such an assignment"),
        }
    }

    fn assign_name(&mut self, node: Node<'s>, value: Value) -> Follow<()> {
        let name = self.text(node);
        if self.scope.contains_key(name) {
            self.declare(name, value);
            return Ok(());
        }
        if self.class.fields.contains_key(name) {
            self.fields.insert(name.to_owned(), value);
            return Ok(());
        }
        match (name, value, &mut self.base) {
            // Kept by Lucene for the next time, which is not followed.
            ("PreviousTokenStream", _, _) => Ok(()),
            ("MaxTokenLength", Value::Number(number), Some(base)) => {
                if limit(base, number) {
                    Ok(())
                } else {
                    self.unsupported(node, "such a limit")
                }
            }
            // A variable that was declared without a value.
            (_, value @ (Value::Stream(_) | Value::Words(_) | Value::Holder(_)), _) => {
                self.declare(name, value);
                Ok(())
            }
            _ => self.unsupported(node, "an assignment to it"),
        }
    }

    // ---- expressions ----

    /// The arguments in an argument list.
    pub(super) fn arguments(&mut self, list: Node<'s>) -> Follow<Vec<Value>> {
        let mut values = Vec::new();
        for argument in named(list) {
            if argument.child_by_field_name("name").is_some() {
                return self.unsupported(argument, "a named argument");
            }
            match named(argument)[..] {
                [value] => values.push(self.value(value)?),
                _ => return self.unsupported(argument, "such an argument"),
            }
        }
        Ok(values)
    }

    fn value(&mut self, node: Node<'s>) -> Follow<Value> {
        self.enter(node)?;
        let value = self.expression(node);
        self.leave();
        value
    }

    fn expression(&mut self, node: Node<'s>) -> Follow<Value> {
        let field = |name| node.child_by_field_name(name);
        match node.kind() {
            "parenthesized_expression" => match named(node)[..] {
                [inner] => self.value(inner),
                _ => self.unsupported(node, "such an expression"),
            },
            "cast_expression" => match field("value") {
                Some(value) => self.value(value),
                None => self.unsupported(node, "such a cast"),
            },
            "as_expression" => match field("left") {
                Some(value) => self.value(value),
                None => self.unsupported(node, "such a cast"),
            },
            "string_literal" => self.string(node),
            "verbatim_string_literal" => {
                let text = self.text(node);
                let inner = text.strip_prefix("@\"").and_then(|text| text.strip_suffix('"')).unwrap_or(text);
                Ok(Value::Text(inner.replace("\"\"", "\"")))
            }
            "integer_literal" => match self.text(node).replace('_', "").parse() {
                Ok(number) => Ok(Value::Number(number)),
                Err(_) => self.unsupported(node, "such a number"),
            },
            "boolean_literal" => Ok(Value::Bool(self.text(node) == "true")),
            "null_literal" => Ok(Value::Null),
            "identifier" => self.name(node),
            "member_access_expression" | "qualified_name" => self.member(node),
            "object_creation_expression" => self.creation(node),
            "invocation_expression" => self.invocation(node),
            "array_creation_expression" | "implicit_array_creation_expression" => {
                match named(node).into_iter().find(|part| part.kind() == "initializer_expression") {
                    Some(items) => self.words(items),
                    None => self.unsupported(node, "an array without its items"),
                }
            }
            "initializer_expression" | "collection_expression" => self.words(node),
            kind => self.unsupported(node, &format!("a {}", kind.replace('_', " "))),
        }
    }

    fn string(&self, node: Node<'s>) -> Follow<Value> {
        let mut out = String::new();
        for part in named(node) {
            let text = self.text(part);
            match part.kind() {
                "escape_sequence" => match unescape(text) {
                    Some(character) => out.push(character),
                    None => return self.unsupported(part, "such an escape"),
                },
                _ => out.push_str(text),
            }
        }
        Ok(Value::Text(out))
    }

    /// `{ "a", "b" }`.
    fn words(&mut self, items: Node<'s>) -> Follow<Value> {
        let mut texts = Vec::new();
        for item in named(items) {
            let item =
                if item.kind() == "expression_element" { item.named_child(0).unwrap_or(item) } else { item };
            match self.value(item)? {
                Value::Text(text) => texts.push(text),
                other => return self.unsupported(item, &format!("{} among words", other.describe())),
            }
        }
        Ok(Value::Words(Words { texts, ignores_case: None }))
    }

    fn name(&mut self, node: Node<'s>) -> Follow<Value> {
        let name = self.text(node);
        if let Some(value) = self.scope.get(name).or_else(|| self.fields.get(name)) {
            return Ok(value.clone());
        }
        match self.class.fields.get(name) {
            // A field sees no variables.
            Some(Some(value)) => {
                let outer = std::mem::take(&mut self.scope);
                let value = self.value(*value);
                self.scope = outer;
                value
            }
            Some(None) => self.error(node, name, format!("the field `{name}` has no value")),
            // The first time there is none.
            None if name == "PreviousTokenStream" => Ok(Value::Null),
            None => self.error(node, name, format!("`{name}` is not known here")),
        }
    }

    fn member(&mut self, node: Node<'s>) -> Follow<Value> {
        let target = node.child_by_field_name("expression").or_else(|| node.child_by_field_name("qualifier"));
        let (Some(target), Some(member)) = (target, node.child_by_field_name("name")) else {
            return self.unsupported(node, "such a member");
        };
        let is_own =
            matches!(target.kind(), "this" | "this_expression") || self.text(target) == self.class.name;
        if is_own {
            return self.name(member);
        }
        let (path, name) = (self.text(target), self.text(member));
        if let Some(value) = self.scope.get(path).or_else(|| self.fields.get(path)) {
            return match value {
                Value::Holder(members) if members.contains_key(name) => Ok(members[name].clone()),
                _ => self.unsupported(node, "such a member"),
            };
        }
        if self.class.classes.contains_key(last_name(path)) {
            return self.unsupported(node, "a member of another class");
        }
        match lucene::member(last_name(path), name) {
            Some(Ok(value)) => Ok(value),
            Some(Err(message)) => self.error(node, name, message),
            None => self.unsupported(node, "such a member"),
        }
    }

    fn creation(&mut self, node: Node<'s>) -> Follow<Value> {
        let Some(kind) = node.child_by_field_name("type") else {
            return self.unsupported(node, "such a new object");
        };
        let name = last_name(self.text(kind));
        let arguments = match node.child_by_field_name("arguments") {
            Some(list) => self.arguments(list)?,
            None => Vec::new(),
        };
        let initializer = node.child_by_field_name("initializer");
        if let Some(class) = self.class.classes.get(name) {
            // One that only holds things does nothing to them.
            let members = class.child_by_field_name("body").map(named).unwrap_or_default();
            let holds = members
                .iter()
                .all(|member| matches!(member.kind(), "field_declaration" | "property_declaration"));
            let has_base = named(*class).iter().any(|part| part.kind() == "base_list");
            if holds && !has_base && arguments.is_empty() && initializer.is_none() {
                return Ok(Value::Holder(HashMap::new()));
            }
            return self.unsupported(node, &format!("a class of one's own, `{name}`,"));
        }
        let mut value = match lucene::created(name, &arguments) {
            Some(Ok(value)) => value,
            Some(Err(message)) => return self.error(node, name, message),
            None => {
                let message = format!(
                    "`{name}` is not known here: no tokenizer, filter, analyzer or set of words of that name is supported"
                );
                return self.error(kind, name, message);
            }
        };
        if let Some(initializer) = initializer {
            self.initialize(&mut value, initializer)?;
        }
        Ok(value)
    }

    /// `{ "a", "b" }` or `{ MaxTokenLength = 5 }` behind `new`.
    fn initialize(&mut self, value: &mut Value, initializer: Node<'s>) -> Follow<()> {
        if let Value::Words(words) = value {
            if let Value::Words(more) = self.words(initializer)? {
                words.texts.extend(more.texts);
            }
            return Ok(());
        }
        for item in named(initializer) {
            let (left, right) = (item.child_by_field_name("left"), item.child_by_field_name("right"));
            let (Some(left), Some(right), "assignment_expression") = (left, right, item.kind()) else {
                return self.unsupported(item, "such an initializer");
            };
            let is_done = match (&mut *value, self.text(left), self.value(right)?) {
                (Value::Stream(stream), "MaxTokenLength", Value::Number(number)) => limit(stream, number),
                _ => false,
            };
            if !is_done {
                return self.unsupported(item, "such an initializer");
            }
        }
        Ok(())
    }

    fn invocation(&mut self, node: Node<'s>) -> Follow<Value> {
        let (Some(function), Some(list)) =
            (node.child_by_field_name("function"), node.child_by_field_name("arguments"))
        else {
            return self.unsupported(node, "such a call");
        };
        let arguments = self.arguments(list)?;
        if function.kind() != "member_access_expression" {
            return self.own_call(node, self.text(function), arguments);
        }
        let (Some(target), Some(name)) =
            (function.child_by_field_name("expression"), function.child_by_field_name("name"))
        else {
            return self.unsupported(node, "such a call");
        };
        let name = self.text(name);
        let path = self.text(target);
        let is_stream = matches!(name, "TokenStream" | "ReusableTokenStream")
            && matches!(arguments[..], [Value::FieldName | Value::Text(_), Value::Reader]);
        if matches!(target.kind(), "base" | "base_expression") {
            return match (&self.base, is_stream) {
                (Some(base), true) => Ok(Value::Stream(base.clone())),
                _ => self.unsupported(node, "such a call of the base"),
            };
        }
        if matches!(target.kind(), "this" | "this_expression") || path == self.class.name {
            return self.own_call(node, name, arguments);
        }
        if matches!(target.kind(), "object_creation_expression" | "parenthesized_expression")
            || self.scope.contains_key(path)
            || self.fields.contains_key(path)
            || self.class.fields.contains_key(path)
        {
            return match (self.value(target)?, is_stream) {
                (Value::Analyzer(analyzer), true) => Ok(Value::Stream(analyzer)),
                _ => self.unsupported(node, "such a call"),
            };
        }
        if self.class.classes.contains_key(last_name(path)) {
            return self.unsupported(node, "a call of another class");
        }
        match lucene::called(last_name(path), name, arguments) {
            Some(Ok(value)) => Ok(value),
            Some(Err(message)) => self.error(node, name, message),
            None => self.unsupported(node, "such a call"),
        }
    }

    /// A call of a method of the class.
    fn own_call(&mut self, node: Node<'s>, name: &str, arguments: Vec<Value>) -> Follow<Value> {
        let methods = self.class.methods.get(name).cloned().unwrap_or_default();
        let count = |method: &Node<'_>| {
            method.child_by_field_name("parameters").map(named).map_or(0, |all| all.len())
        };
        let fitting: Vec<_> = methods.into_iter().filter(|method| count(method) == arguments.len()).collect();
        match (&fitting[..], &self.base) {
            ([method], _) => self.call(*method, arguments),
            // Not overridden here.
            ([], Some(base)) if name == "TokenStream" => Ok(Value::Stream(base.clone())),
            _ => self.unsupported(node, "such a call"),
        }
    }
}

/// Sets the longest token of a standard tokenizer; `false` when it is none.
fn limit(analyzer: &mut Analyzer, number: i64) -> bool {
    match &mut analyzer.tokenizer {
        Tokenizer::Standard { length_max } => {
            *length_max = u32::try_from(number.max(0)).unwrap_or(u32::MAX);
            true
        }
        _ => false,
    }
}
