//! The class of an analyzer: what it derives from, what its constructor sets, which of its methods says what it does.

use std::collections::HashMap;

use tree_sitter::Node;

use super::Analyzer;
use super::follow::{Following, Value};
use super::lucene::{self, Base};
use crate::error::CompileError;
use crate::linq::{Syntax, named};

/// Methods that an analyzer may override without changing what it does.
const HARMLESS: &[&str] = &["Dispose", "ToString", "Equals", "GetHashCode"];

/// A class that is to be an analyzer.
pub(super) struct Class<'s> {
    pub(super) syntax: &'s Syntax,
    pub(super) name: String,
    node: Node<'s>,
    pub(super) methods: HashMap<&'s str, Vec<Node<'s>>>,
    /// The values that fields are declared with.
    pub(super) fields: HashMap<&'s str, Option<Node<'s>>>,
    constructors: Vec<Node<'s>>,
    /// All classes of the file, by name: what they are called is no longer Lucene's.
    pub(super) classes: HashMap<&'s str, Node<'s>>,
}

impl<'s> Class<'s> {
    /// The class of this name in a file.
    pub(super) fn find(syntax: &'s Syntax, name: &str) -> Result<Class<'s>, CompileError> {
        let (mut classes, mut found) = (HashMap::new(), None);
        let mut waiting = vec![(syntax.root(), true)];
        while let Some((node, is_top)) = waiting.pop() {
            for child in named(node) {
                match child.kind() {
                    "namespace_declaration" | "file_scoped_namespace_declaration" | "declaration_list" => {
                        waiting.push((child, is_top));
                    }
                    "class_declaration" | "struct_declaration" => {
                        let text = child.child_by_field_name("name").map_or("", |name| syntax.text_of(name));
                        classes.insert(text, child);
                        if is_top && text == name && has_modifier(syntax, child, "public") {
                            found = Some(child);
                        }
                        waiting.push((child, false));
                    }
                    _ => {}
                }
            }
        }
        let Some(node) = found else {
            let message = format!(
                "Could not find type '{name}' in given assembly: the code has no public class of that name"
            );
            return Err(syntax.error(syntax.root(), "", message));
        };
        let mut class = Class {
            syntax,
            name: name.to_owned(),
            node,
            methods: HashMap::new(),
            fields: HashMap::new(),
            constructors: Vec::new(),
            classes,
        };
        class.read_members()?;
        Ok(class)
    }

    fn read_members(&mut self) -> Result<(), CompileError> {
        let syntax = self.syntax;
        let body = self.node.child_by_field_name("body").map(named).unwrap_or_default();
        for member in body {
            match member.kind() {
                "method_declaration" => {
                    let name = member.child_by_field_name("name").map_or("", |name| syntax.text_of(name));
                    let is_override = has_modifier(syntax, member, "override");
                    let is_stream = matches!(name, "TokenStream" | "ReusableTokenStream");
                    if is_override && !is_stream && !HARMLESS.contains(&name) {
                        let message = format!("an analyzer that overrides `{name}` is not supported");
                        return Err(syntax.error(member, name, message));
                    }
                    if is_stream && !is_override {
                        let message = format!("`{name}` must be `override`: as it stands it is never called");
                        return Err(syntax.error(member, name, message));
                    }
                    self.methods.entry(name).or_default().push(member);
                }
                "constructor_declaration" if !has_modifier(syntax, member, "static") => {
                    self.constructors.push(member);
                }
                "field_declaration" => {
                    for declaration in
                        named(member).into_iter().filter(|part| part.kind() == "variable_declaration")
                    {
                        for variable in variables(declaration) {
                            self.fields.insert(syntax.text_of(variable.name), variable.value);
                        }
                    }
                }
                "property_declaration" => {
                    let name = member.child_by_field_name("name").map_or("", |name| syntax.text_of(name));
                    let value = member.child_by_field_name("value").map(|value| match value.kind() {
                        "arrow_expression_clause" => value.named_child(0).unwrap_or(value),
                        _ => value,
                    });
                    self.fields.insert(name, value);
                }
                "class_declaration" | "struct_declaration" | "destructor_declaration" => {}
                other => {
                    let what = other.replace('_', " ");
                    return Err(syntax.error(
                        member,
                        &what,
                        format!("a {what} in an analyzer is not supported"),
                    ));
                }
            }
        }
        Ok(())
    }

    /// What the analyzer does.
    pub(super) fn analyzer(&self) -> Result<Analyzer, CompileError> {
        let base = self.base()?;
        let mut following = Following::new(self);
        let base = self.construct(base, &mut following)?;
        following.base = base.clone();
        // Lucene asks for the reusable stream, which unless it is overridden is the other one.
        let method =
            ["ReusableTokenStream", "TokenStream"].iter().find_map(|name| self.methods.get(name)?.first());
        let Some(method) = method else {
            return base.ok_or_else(|| {
                let message =
                    format!("'{}' does not implement inherited abstract member 'TokenStream'", self.name);
                self.syntax.error(self.node, "class", message)
            });
        };
        match following.call(*method, vec![Value::FieldName, Value::Reader])? {
            Value::Stream(analyzer) => Ok(analyzer),
            other => {
                let message = format!("the method returns {}, not a token stream", other.describe());
                Err(self.syntax.error(*method, "return", message))
            }
        }
    }

    fn base(&self) -> Result<(Node<'s>, Base), CompileError> {
        let list = named(self.node).into_iter().find(|part| part.kind() == "base_list");
        let types = list.map(named).unwrap_or_default();
        let error = |node, message: String| Err(self.syntax.error(node, "class", message));
        match types[..] {
            [one] => match lucene::base(last_name(self.syntax.text_of(one))) {
                Some(base) if !self.classes.contains_key(last_name(self.syntax.text_of(one))) => {
                    Ok((one, base))
                }
                _ => error(
                    one,
                    format!(
                        "an analyzer that derives from `{}` is not supported; Analyzer, StandardAnalyzer, KeywordAnalyzer, RavenStandardAnalyzer and LowerCaseKeywordAnalyzer are",
                        self.syntax.text_of(one)
                    ),
                ),
            },
            [] => error(self.node, format!("'{}' does not derive from Analyzer", self.name)),
            [_, second, ..] => error(second, "an analyzer with several bases is not supported".to_owned()),
        }
    }

    /// Follows the constructor that a server would call: the one without parameters, or the one that takes Lucene's version. What the base does is the answer, if it does
    /// anything by itself.
    fn construct(
        &self,
        (node, base): (Node<'s>, Base),
        following: &mut Following<'_, 's>,
    ) -> Result<Option<Analyzer>, CompileError> {
        let count = |constructor: &Node<'s>| {
            constructor.child_by_field_name("parameters").map(named).map_or(0, |all| all.len())
        };
        let is_version = |constructor: &Node<'s>| {
            let parameters = constructor.child_by_field_name("parameters").map(named).unwrap_or_default();
            parameters.len() == 1
                && parameters[0]
                    .child_by_field_name("type")
                    .is_some_and(|kind| last_name(self.syntax.text_of(kind)) == "Version")
        };
        let constructor = match self.constructors[..] {
            [] => None,
            _ => {
                let found = self
                    .constructors
                    .iter()
                    .find(|one| count(one) == 0)
                    .or_else(|| self.constructors.iter().find(|one| is_version(one)));
                let found = *found.ok_or_else(|| {
                    let message = "No recognizable constructor found: one without parameters is expected, or one of a Version";
                    self.syntax.error(self.constructors[0], "constructor", message.to_owned())
                })?;
                if !has_modifier(self.syntax, found, "public") {
                    let message = "No recognizable constructor found: it must be public";
                    return Err(self.syntax.error(found, "constructor", message.to_owned()));
                }
                Some(found)
            }
        };
        let Some(constructor) = constructor else {
            return match base {
                Base::Standard | Base::RavenStandard => Err(self.syntax.error(
                    node,
                    "constructor",
                    format!("`{}` needs a constructor that gives it a Version", self.syntax.text_of(node)),
                )),
                _ => lucene::constructed(base, &[])
                    .map_err(|message| self.syntax.error(node, "class", message)),
            };
        };
        if is_version(&constructor)
            && let Some(parameter) =
                constructor.child_by_field_name("parameters").and_then(|all| named(all).first().copied())
            && let Some(name) = parameter.child_by_field_name("name")
        {
            following.declare(self.syntax.text_of(name), Value::Version);
        }
        let initializer =
            named(constructor).into_iter().find(|part| part.kind() == "constructor_initializer");
        let mut arguments = Vec::new();
        if let Some(initializer) = initializer {
            if !self.syntax.text_of(initializer).trim_start_matches(':').trim_start().starts_with("base") {
                return Err(self.syntax.error(
                    initializer,
                    "this",
                    "a constructor that calls another is not supported".to_owned(),
                ));
            }
            for list in named(initializer) {
                arguments = following.arguments(list)?;
            }
        }
        let at = initializer.unwrap_or(constructor);
        let made = lucene::constructed(base, &arguments)
            .map_err(|message| self.syntax.error(at, "base", message))?;
        following.base = made;
        if let Some(body) = constructor.child_by_field_name("body") {
            following.run_constructor(body)?;
        }
        Ok(following.base.take())
    }
}

/// A variable that a declaration makes.
pub(super) struct Variable<'t> {
    pub(super) name: Node<'t>,
    pub(super) value: Option<Node<'t>>,
}

pub(super) fn variables(declaration: Node<'_>) -> Vec<Variable<'_>> {
    let declarators = named(declaration).into_iter().filter(|part| part.kind() == "variable_declarator");
    declarators
        .filter_map(|declarator| {
            let name = declarator.child_by_field_name("name")?;
            let value = named(declarator).into_iter().find(|part| part.id() != name.id());
            Some(Variable { name, value })
        })
        .collect()
}

fn has_modifier(syntax: &Syntax, node: Node<'_>, wanted: &str) -> bool {
    named(node).iter().any(|part| part.kind() == "modifier" && syntax.text_of(*part) == wanted)
}

/// The last name of a path, without type arguments: `HashSet` of `System.Collections.Generic.HashSet<string>`.
pub(super) fn last_name(path: &str) -> &str {
    let path = path.split('<').next().unwrap_or(path).trim();
    path.rsplit(['.', ':']).next().unwrap_or(path).trim()
}
