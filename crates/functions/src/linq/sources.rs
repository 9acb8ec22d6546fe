//! Additional sources: static methods and constants that functions call. They are put into the function where they are called, so they cost nothing to call and cannot call
//! themselves.

use std::collections::{BTreeMap, HashMap};

use tree_sitter::Node;

use super::lower::{Lower, Lowering};
use super::syntax::{Syntax, named};
use crate::error::CompileError;
use crate::program::{Expr, Type};

/// All expressions of a function, those of the methods it calls counted each time, are at most this many: methods that call each other could be many more.
const EXPRESSIONS_MAX: u32 = 100_000;

/// The additional sources of an index, parsed.
pub(super) struct Sources {
    files: Vec<(String, Syntax)>,
}

/// What can be used of the sources.
#[derive(Default)]
pub(super) struct Declared<'s> {
    /// Methods by name; those of several classes, or with several numbers of parameters, share one.
    methods: HashMap<&'s str, Vec<Method<'s>>>,
    /// Constants and static fields that have a value.
    constants: HashMap<&'s str, Vec<Constant<'s>>>,
}

#[derive(Clone, Copy)]
struct Method<'s> {
    file: &'s str,
    syntax: &'s Syntax,
    class: &'s str,
    node: Node<'s>,
    /// Whether its first parameter is `this`.
    is_extension: bool,
    parameters: usize,
}

#[derive(Clone, Copy)]
struct Constant<'s> {
    syntax: &'s Syntax,
    class: &'s str,
    value: Node<'s>,
}

impl Sources {
    pub(super) fn parse(sources: &BTreeMap<String, String>) -> Result<Sources, CompileError> {
        let mut files = Vec::new();
        for (name, text) in sources.iter().filter(|(_, text)| !text.trim().is_empty()) {
            let syntax = Syntax::of_file(text).map_err(|error| in_source(name, error))?;
            files.push((name.clone(), syntax));
        }
        Ok(Sources { files })
    }

    pub(super) fn declared(&self) -> Declared<'_> {
        let mut declared = Declared::default();
        for (name, syntax) in &self.files {
            // Classes in namespaces and in each other; each node is seen once.
            let mut waiting = vec![(syntax.root(), "")];
            while let Some((node, class)) = waiting.pop() {
                for child in named(node) {
                    declared.add(name, syntax, class, child, &mut waiting);
                }
            }
        }
        declared
    }
}

impl<'s> Declared<'s> {
    fn add(
        &mut self,
        file: &'s str,
        syntax: &'s Syntax,
        class: &'s str,
        node: Node<'s>,
        waiting: &mut Vec<(Node<'s>, &'s str)>,
    ) {
        match node.kind() {
            "namespace_declaration" | "file_scoped_namespace_declaration" | "declaration_list" => {
                waiting.push((node, class));
            }
            "class_declaration" | "struct_declaration" | "record_declaration" => {
                let name = node.child_by_field_name("name").map_or("", |name| syntax.text_of(name));
                waiting.push((node, name));
            }
            "method_declaration" => {
                let (Some(name), Some(parameters)) =
                    (node.child_by_field_name("name"), node.child_by_field_name("parameters"))
                else {
                    return;
                };
                let is_static = named(node)
                    .iter()
                    .any(|part| part.kind() == "modifier" && syntax.text_of(*part) == "static");
                if !is_static {
                    return;
                }
                let parameters = named(parameters);
                let is_extension = parameters
                    .first()
                    .is_some_and(|first| syntax.text_of(*first).split_whitespace().next() == Some("this"));
                let method = Method { file, syntax, class, node, is_extension, parameters: parameters.len() };
                self.methods.entry(syntax.text_of(name)).or_default().push(method);
            }
            "field_declaration" => {
                for variables in named(node).into_iter().filter(|part| part.kind() == "variable_declaration")
                {
                    for variable in
                        named(variables).into_iter().filter(|part| part.kind() == "variable_declarator")
                    {
                        let parts = named(variable);
                        let [name, .., value] = parts[..] else { continue };
                        let constant = Constant { syntax, class, value };
                        self.constants.entry(syntax.text_of(name)).or_default().push(constant);
                    }
                }
            }
            _ => {}
        }
    }

    /// Whether there is a class of this name, with or without namespaces before it.
    pub(super) fn has_class(&self, path: &str) -> bool {
        let class = path.rsplit('.').next().unwrap_or_default();
        !class.is_empty()
            && (self.methods.values().flatten().any(|method| method.class == class)
                || self.constants.values().flatten().any(|constant| constant.class == class))
    }
}

/// An error in an additional source says in which.
fn in_source(name: &str, error: CompileError) -> CompileError {
    if error.message.starts_with("additional source `") {
        return error;
    }
    CompileError { message: format!("additional source `{name}`: {}", error.message), ..error }
}

impl<'s> Lowering<'s> {
    /// The value of a constant of an additional source.
    pub(super) fn source_constant(&mut self, class: Option<&str>, name: &str) -> Option<Lower<Expr>> {
        let class = class.map(|class| class.rsplit('.').next().unwrap_or_default());
        let found = self.declared.constants.get(name)?;
        let constant = *found.iter().find(|constant| class.is_none_or(|class| class == constant.class))?;
        // A constant is made of constants: it sees no variables.
        Some(self.in_syntax(constant.syntax, |lowering| lowering.expression(constant.value)))
    }

    /// A call of a method of an additional source, if there is one of this name: `class` is given for `Class.Method(..)`, `target` for `value.Method(..)`.
    pub(super) fn source_call(
        &mut self,
        node: Node<'_>,
        class: Option<&str>,
        name: &str,
        target: Option<Expr>,
        arguments: &[Node<'_>],
    ) -> Option<Lower<Expr>> {
        let class = class.map(|class| class.rsplit('.').next().unwrap_or_default());
        let found: Vec<Method<'s>> = self
            .declared
            .methods
            .get(name)?
            .iter()
            .filter(|method| class.is_none_or(|class| class == method.class))
            .filter(|method| target.is_none() || method.is_extension)
            .copied()
            .collect();
        let given = arguments.len() + usize::from(target.is_some());
        let method = match found[..] {
            [] => return None,
            [method] => method,
            _ => *found.iter().find(|method| method.parameters == given).unwrap_or(&found[0]),
        };
        Some(self.inlined(node, name, method, target, arguments))
    }

    fn inlined(
        &mut self,
        node: Node<'_>,
        name: &str,
        method: Method<'s>,
        target: Option<Expr>,
        arguments: &[Node<'_>],
    ) -> Lower<Expr> {
        if self.calling.contains(&method.node.id()) {
            return Err(self.refuse(node, name, format!("`{name}` calls itself, which is not supported")));
        }
        let mut values: Vec<Expr> = target.into_iter().collect();
        for argument in arguments {
            values.push(self.expression(*argument)?);
        }
        if values.len() > method.parameters {
            return Err(self.wrong_count(node, name, &method.parameters.to_string(), values.len()));
        }
        let line = self.line(node);
        self.calling.push(method.node.id());
        let result = self.in_syntax(method.syntax, |lowering| lowering.body_of(method, values, line));
        self.calling.pop();
        result.map_err(|error| in_source(method.file, error))
    }

    fn body_of(&mut self, method: Method<'s>, values: Vec<Expr>, line: u32) -> Lower<Expr> {
        let parameters = self.field(method.node, "parameters")?;
        let mut values = values.into_iter();
        let mut variables = Vec::new();
        for parameter in named(parameters) {
            let name = self.field(parameter, "name")?;
            let value = match values.next() {
                Some(value) => value,
                // `int n = 3`
                None => match parameter.child_by_field_name("default").or_else(|| default_value(parameter)) {
                    Some(value) => self.expression(value)?,
                    None => {
                        let name = self.text(name);
                        return Err(self.refuse(parameter, name, format!("nothing is given for `{name}`")));
                    }
                },
            };
            let of = parameter.child_by_field_name("type");
            let value = self.widened(of, value, line);
            variables.push((self.declare(name, self.text(name))?, value));
        }
        let of =
            method.node.child_by_field_name("returns").or_else(|| method.node.child_by_field_name("type"));
        let body = self.field(method.node, "body")?;
        let result = match body.kind() {
            "block" => self.block(body, &named(body))?,
            _ => {
                let value = self.only_child(body)?;
                self.expression(value)?
            }
        };
        let result = Box::new(self.widened(of, result, line));
        Ok(Expr::Block { variables: variables.into(), result })
    }

    /// A value that is given where a type is declared: integers become what a declared `double` or `decimal` says.
    fn widened(&self, of: Option<Node<'_>>, value: Expr, line: u32) -> Expr {
        match of.and_then(|of| self.type_of(of).ok()) {
            Some((to @ (Type::Double | Type::Float | Type::Decimal), nullable)) => {
                Expr::Cast { to, nullable, value: Box::new(value), line }
            }
            _ => value,
        }
    }

    /// Lowers something of another text, which sees none of the variables of this one.
    fn in_syntax<T>(&mut self, syntax: &'s Syntax, lower: impl FnOnce(&mut Self) -> Lower<T>) -> Lower<T> {
        let outer = std::mem::replace(&mut self.syntax, syntax);
        let scope = std::mem::take(&mut self.scope);
        let result = lower(self);
        self.syntax = outer;
        self.scope = scope;
        result
    }

    /// Counts an expression.
    pub(super) fn count(&mut self, node: Node<'_>) -> Lower<()> {
        self.expressions += 1;
        if self.expressions > EXPRESSIONS_MAX {
            return Err(self.refuse(node, "", format!("a function may have {EXPRESSIONS_MAX} expressions")));
        }
        Ok(())
    }
}

/// The value after `=` of a parameter.
fn default_value(parameter: Node<'_>) -> Option<Node<'_>> {
    let parts = super::syntax::children(parameter);
    let equals = parts.iter().position(|part| part.kind() == "=")?;
    parts.get(equals + 1).copied()
}
