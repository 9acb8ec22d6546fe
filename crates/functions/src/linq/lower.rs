//! From the tree of a text to a program: scopes, names, and the plain expressions. What is not supported is refused here, with its name and position.

use std::collections::{BTreeMap, HashMap};

use regex::Regex;
use tree_sitter::Node;

use super::sources::{Declared, Sources};
use super::syntax::{Syntax, children, named};
use crate::error::CompileError;
use crate::program::{Comparison, Expr, Lambda, Member, Operator, Program, Slot, Type};
use crate::source::{Collections, Source, SourceKind};

/// Expressions may stand in each other this deep. Each level costs stack, here and when the function runs.
const DEPTH_MAX: u32 = 200;

/// A function may have this many variables.
const SLOTS_MAX: u32 = 10_000;

/// What a text is read as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// A map: runs over `docs`, `timeSeries` or `counters`.
    Map,
    /// A reduce: runs over `results`.
    Reduce,
}

/// A lowered text.
#[derive(Debug)]
pub(crate) struct Lowered {
    pub(crate) program: Program,
    /// What a map runs over.
    pub(crate) source: Source,
    /// The collections from which it loads documents, in the order of the text.
    pub(crate) loads: Vec<Box<str>>,
    pub(crate) uses_compare_exchange: bool,
    pub(crate) has_dynamic_fields: bool,
}

/// Lowers a text.
pub(crate) fn lower(
    text: &str,
    role: Role,
    sources: &BTreeMap<String, String>,
) -> Result<Lowered, CompileError> {
    let sources = Sources::parse(sources)?;
    let syntax = Syntax::of_expression(text)?;
    let mut lowering = Lowering::new(&syntax, role, sources.declared());
    let root = syntax.expression()?;
    let body = lowering.expression(root)?;
    let Some(source) = lowering.source.take() else {
        let expected = match role {
            Role::Map => "`docs`, `timeSeries` or `counters`",
            Role::Reduce => "`results`",
        };
        return Err(lowering.refuse(root, "", format!("the function reads nothing: {expected} is expected")));
    };
    Ok(Lowered {
        program: Program {
            body,
            slots: lowering.slots,
            names: lowering.names,
            patterns: lowering.patterns,
            ..Program::default()
        },
        source,
        loads: lowering.loads,
        uses_compare_exchange: lowering.uses_compare_exchange,
        has_dynamic_fields: lowering.has_dynamic_fields,
    })
}

pub(super) type Lower<T> = Result<T, CompileError>;

pub(super) struct Lowering<'s> {
    pub(super) syntax: &'s Syntax,
    role: Role,
    names: Vec<Box<str>>,
    name_numbers: HashMap<Box<str>, u32>,
    pub(super) patterns: Vec<Regex>,
    /// The variables that are in scope, the innermost last.
    pub(super) scope: Vec<(String, Slot)>,
    slots: u32,
    depth: u32,
    pub(super) source: Option<Source>,
    pub(super) loads: Vec<Box<str>>,
    pub(super) uses_compare_exchange: bool,
    pub(super) has_dynamic_fields: bool,
    /// What the additional sources declare.
    pub(super) declared: Declared<'s>,
    /// The methods of additional sources that are being put in, by their nodes.
    pub(super) calling: Vec<usize>,
    /// How many expressions there are so far.
    pub(super) expressions: u32,
}

impl<'s> Lowering<'s> {
    fn new(syntax: &'s Syntax, role: Role, declared: Declared<'s>) -> Lowering<'s> {
        Lowering {
            syntax,
            role,
            names: Vec::new(),
            name_numbers: HashMap::new(),
            patterns: Vec::new(),
            scope: Vec::new(),
            slots: 0,
            depth: 0,
            source: None,
            loads: Vec::new(),
            uses_compare_exchange: false,
            has_dynamic_fields: false,
            declared,
            calling: Vec::new(),
            expressions: 0,
        }
    }

    pub(super) fn refuse(&self, node: Node<'_>, construct: &str, message: String) -> CompileError {
        self.syntax.error(node, construct, message)
    }

    pub(super) fn unsupported(&self, node: Node<'_>, construct: &str) -> CompileError {
        self.syntax.error(node, construct, format!("`{construct}` is not supported in index functions"))
    }

    pub(super) fn text(&self, node: Node<'_>) -> &'s str {
        self.syntax.text_of(node)
    }

    pub(super) fn line(&self, node: Node<'_>) -> u32 {
        self.syntax.line_of(node)
    }

    /// A child that the grammar promises.
    pub(super) fn field<'t>(&self, node: Node<'t>, name: &str) -> Lower<Node<'t>> {
        node.child_by_field_name(name)
            .ok_or_else(|| self.refuse(node, node.kind(), format!("`{}` has no {name}", node.kind())))
    }

    // Scopes.

    pub(super) fn declare(&mut self, node: Node<'_>, name: &str) -> Lower<Slot> {
        if self.slots >= SLOTS_MAX {
            return Err(self.refuse(node, "", format!("a function may have {SLOTS_MAX} variables")));
        }
        let slot = self.slots;
        self.slots += 1;
        self.scope.push((name.trim_start_matches('@').to_owned(), slot));
        Ok(slot)
    }

    pub(super) fn lookup(&self, name: &str) -> Option<Slot> {
        let name = name.trim_start_matches('@');
        self.scope.iter().rev().find(|(known, _)| known == name).map(|(_, slot)| *slot)
    }

    /// How many variables are in scope; [`Lowering::leave`] with it forgets those declared since.
    pub(super) fn enter(&self) -> usize {
        self.scope.len()
    }

    pub(super) fn leave(&mut self, scope: usize) {
        self.scope.truncate(scope);
    }

    /// The places of the variables declared since `scope`.
    pub(super) fn slots_since(&self, scope: usize) -> Box<[Slot]> {
        self.scope[scope.min(self.scope.len())..].iter().map(|(_, slot)| *slot).collect()
    }

    pub(super) fn name(&mut self, name: &str) -> u32 {
        if let Some(number) = self.name_numbers.get(name) {
            return *number;
        }
        let number = self.names.len() as u32;
        self.names.push(name.into());
        self.name_numbers.insert(name.into(), number);
        number
    }

    // Expressions.

    pub(super) fn expression(&mut self, node: Node<'_>) -> Lower<Expr> {
        if self.depth >= DEPTH_MAX {
            return Err(self.refuse(node, "", format!("expressions may be {DEPTH_MAX} deep")));
        }
        self.count(node)?;
        self.depth += 1;
        let result = self.expression_at(node);
        self.depth -= 1;
        result
    }

    pub(super) fn boxed(&mut self, node: Node<'_>) -> Lower<Box<Expr>> {
        Ok(Box::new(self.expression(node)?))
    }

    pub(super) fn all(&mut self, nodes: &[Node<'_>]) -> Lower<Box<[Expr]>> {
        nodes.iter().map(|node| self.expression(*node)).collect()
    }

    fn expression_at(&mut self, node: Node<'_>) -> Lower<Expr> {
        match node.kind() {
            "parenthesized_expression" | "checked_expression" => {
                let inner = self.only_child(node)?;
                self.expression(inner)
            }
            "identifier" | "implicit_parameter" => self.identifier(node),
            "integer_literal"
            | "real_literal"
            | "string_literal"
            | "verbatim_string_literal"
            | "raw_string_literal"
            | "character_literal"
            | "boolean_literal"
            | "null_literal" => self.literal(node),
            "interpolated_string_expression" => self.interpolated(node),
            "member_access_expression" => self.member_access(node),
            "conditional_access_expression" => self.conditional_access(node),
            "element_access_expression" => self.element_access(node),
            "invocation_expression" => self.invocation(node),
            "binary_expression" => self.binary(node),
            "prefix_unary_expression" => self.prefix(node),
            "postfix_unary_expression" => {
                let operator = children(node).last().map(|child| self.text(*child)).unwrap_or_default();
                if operator != "!" {
                    return Err(self.unsupported(node, operator));
                }
                let inner = self.only_child(node)?;
                self.expression(inner)
            }
            "conditional_expression" => {
                let condition = self.field(node, "condition")?;
                let consequence = self.field(node, "consequence")?;
                let alternative = self.field(node, "alternative")?;
                Ok(Expr::Conditional(Box::new((
                    self.expression(condition)?,
                    self.expression(consequence)?,
                    self.expression(alternative)?,
                ))))
            }
            "cast_expression" => self.cast(node),
            "is_expression" => {
                let (left, right) = (self.field(node, "left")?, self.field(node, "right")?);
                Ok(Expr::Is(self.type_of(right)?.0, self.boxed(left)?))
            }
            "as_expression" => {
                let (left, right) = (self.field(node, "left")?, self.field(node, "right")?);
                Ok(Expr::As(self.type_of(right)?.0, self.boxed(left)?))
            }
            "is_pattern_expression" => self.is_pattern(node),
            "switch_expression" => self.switch(node),
            "anonymous_object_creation_expression" => self.anonymous_object(node),
            "object_creation_expression" => self.object_creation(node),
            "implicit_array_creation_expression" | "array_creation_expression" => self.array_creation(node),
            "query_expression" => self.query(node),
            "lambda_expression" | "anonymous_method_expression" => {
                Err(self.refuse(node, "lambda", "a lambda may stand only as an argument".to_owned()))
            }
            "default_expression" => Ok(match named(node).first() {
                Some(of) => self.type_of(*of)?.0.default_value(),
                None => Expr::Null,
            }),
            "typeof_expression" => {
                Err(self.refuse(node, "typeof", "`typeof` is supported as `typeof(T).Name`".to_owned()))
            }
            kind => {
                let shown = kind.trim_end_matches("_expression").replace('_', " ");
                Err(self.unsupported(node, &shown))
            }
        }
    }

    /// The one child that is no parenthesis or operator.
    pub(super) fn only_child<'t>(&self, node: Node<'t>) -> Lower<Node<'t>> {
        match named(node)[..] {
            [child] => Ok(child),
            _ => Err(self.unsupported(node, node.kind())),
        }
    }

    fn identifier(&mut self, node: Node<'_>) -> Lower<Expr> {
        let name = self.text(node);
        if let Some(slot) = self.lookup(name) {
            return Ok(Expr::Local(slot));
        }
        match (name, self.role) {
            ("docs", Role::Map) => self.source(node, SourceKind::Documents, Collections::All, None),
            ("results", Role::Reduce) => self.source(node, SourceKind::Documents, Collections::All, None),
            _ => match self.source_constant(None, name) {
                Some(constant) if !self.calling.is_empty() => constant,
                _ => Err(self.refuse(node, name, format!("`{name}` is not known here"))),
            },
        }
    }

    /// Notes what the function runs over. It may say so once.
    pub(super) fn source(
        &mut self,
        node: Node<'_>,
        kind: SourceKind,
        collections: Collections,
        name: Option<Box<str>>,
    ) -> Lower<Expr> {
        if self.source.is_some() {
            let shown = self.text(node);
            return Err(self.refuse(
                node,
                shown,
                format!("a function reads one source; `{shown}` is a second one"),
            ));
        }
        self.source = Some(Source { kind, collections, name });
        Ok(Expr::Source)
    }

    /// `docs.Users`, `docs["Users"]`, `timeSeries.Users.HeartRates`, `counters.Users.Likes`, if the node is one of them.
    fn rooted(&mut self, node: Node<'_>) -> Lower<Option<Expr>> {
        if self.role != Role::Map {
            return Ok(None);
        }
        let mut path = Vec::new();
        let mut at = node;
        loop {
            // No source has more parts.
            if path.len() > 2 {
                return Ok(None);
            }
            match at.kind() {
                "member_access_expression" => {
                    path.push(self.text(self.field(at, "name")?).to_owned());
                    at = self.field(at, "expression")?;
                }
                "element_access_expression" => {
                    let subscript = self.field(at, "subscript")?;
                    let Some(text) = self.constant_text(subscript) else { return Ok(None) };
                    path.push(text);
                    at = self.field(at, "expression")?;
                }
                "identifier" => break,
                _ => return Ok(None),
            }
        }
        let root = self.text(at);
        if self.lookup(root).is_some() {
            return Ok(None);
        }
        path.reverse();
        let kind = match root {
            "docs" => SourceKind::Documents,
            "timeSeries" => SourceKind::TimeSeries,
            "counters" => SourceKind::Counters,
            _ => return Ok(None),
        };
        let mut path = path.into_iter().map(String::into_boxed_str);
        let collections = path.next().map_or(Collections::All, |name| Collections::Named(vec![name]));
        let name = path.next();
        if path.next().is_some() || (name.is_some() && kind == SourceKind::Documents) {
            // `docs.Users.Name` is not one source but a member of it.
            return Ok(None);
        }
        self.source(node, kind, collections, name).map(Some)
    }

    /// The constant text in brackets.
    pub(super) fn constant_text(&mut self, subscript: Node<'_>) -> Option<String> {
        let argument = named(subscript).first().copied()?;
        let inner = if argument.kind() == "argument" { named(argument).first().copied()? } else { argument };
        match self.literal(inner).ok()? {
            Expr::Text(text) => Some(text.into()),
            _ => None,
        }
    }

    fn member_access(&mut self, node: Node<'_>) -> Lower<Expr> {
        if let Some(source) = self.rooted(node)? {
            return Ok(source);
        }
        let name_node = self.field(node, "name")?;
        let target = node.child_by_field_name("expression").or_else(|| node.child(0));
        let Some(target) = target else { return Err(self.unsupported(node, "member access")) };
        let name = self.text(name_node);
        if target.kind() == "typeof_expression" {
            let of = self.only_child(target)?;
            return match name {
                "Name" => Ok(Expr::Text(self.text(of).rsplit('.').next().unwrap_or_default().trim().into())),
                "FullName" => Ok(Expr::Text(self.text(of).into())),
                _ => Err(self.unsupported(node, "typeof")),
            };
        }
        if let Some(class) = self.static_class(target) {
            return self.static_member(node, &class, name);
        }
        if let Some(class) = self.source_class(target)
            && let Some(constant) = self.source_constant(Some(&class), name)
        {
            return constant;
        }
        let target = self.boxed(target)?;
        Ok(self.member_of(target, name, node))
    }

    pub(super) fn member_of(&mut self, target: Box<Expr>, name: &str, node: Node<'_>) -> Expr {
        let line = self.line(node);
        let name = name.trim_start_matches('@');
        Expr::Member { target, known: Member::named(name), name: self.name(name), line }
    }

    /// `a?.B`, `a?.B.C`, `a?[0]`, `a?.M()`: null propagates of itself, so it is `a.B` and so on.
    fn conditional_access(&mut self, node: Node<'_>) -> Lower<Expr> {
        let condition = self.field(node, "condition")?;
        let target = self.expression(condition)?;
        let Some(rest) = named(node).into_iter().nth(1) else {
            return Err(self.unsupported(node, "?."));
        };
        self.binding(target, rest)
    }

    /// What stands after `?`, applied to a target.
    pub(super) fn binding(&mut self, target: Expr, node: Node<'_>) -> Lower<Expr> {
        if self.depth >= DEPTH_MAX {
            return Err(self.refuse(node, "", format!("expressions may be {DEPTH_MAX} deep")));
        }
        self.depth += 1;
        let result = self.binding_at(target, node);
        self.depth -= 1;
        result
    }

    fn binding_at(&mut self, target: Expr, node: Node<'_>) -> Lower<Expr> {
        match node.kind() {
            "member_binding_expression" => {
                let name = self.text(self.field(node, "name")?);
                Ok(self.member_of(Box::new(target), name, node))
            }
            "element_binding_expression" => {
                let index = self.index_argument(node)?;
                Ok(Expr::Index { target: Box::new(target), index, line: self.line(node) })
            }
            "member_access_expression" => {
                let inner = self.field(node, "expression")?;
                let name = self.text(self.field(node, "name")?);
                let target = self.binding(target, inner)?;
                Ok(self.member_of(Box::new(target), name, node))
            }
            "conditional_access_expression" => {
                let condition = self.field(node, "condition")?;
                let target = self.binding(target, condition)?;
                match named(node).into_iter().nth(1) {
                    Some(rest) => self.binding(target, rest),
                    None => Err(self.unsupported(node, "?.")),
                }
            }
            "invocation_expression" => {
                let function = self.field(node, "function")?;
                let arguments = self.field(node, "arguments")?;
                let (target, name) = match function.kind() {
                    "member_binding_expression" => (target, self.field(function, "name")?),
                    "member_access_expression" => {
                        let inner = self.field(function, "expression")?;
                        (self.binding(target, inner)?, self.field(function, "name")?)
                    }
                    _ => return Err(self.unsupported(node, "?.")),
                };
                self.method(node, target, name, arguments)
            }
            _ => Err(self.unsupported(node, "?.")),
        }
    }

    fn element_access(&mut self, node: Node<'_>) -> Lower<Expr> {
        if let Some(source) = self.rooted(node)? {
            return Ok(source);
        }
        let target = self.field(node, "expression")?;
        let subscript = self.field(node, "subscript")?;
        let target = self.boxed(target)?;
        let line = self.line(node);
        if let Some(name) = self.constant_text(subscript) {
            let name = self.name(&name);
            return Ok(Expr::Member { target, name, known: None, line });
        }
        let index = self.index_argument(subscript)?;
        Ok(Expr::Index { target, index, line })
    }

    fn index_argument(&mut self, subscript: Node<'_>) -> Lower<Box<Expr>> {
        let argument = self.only_child(subscript)?;
        let inner = if argument.kind() == "argument" { self.only_child(argument)? } else { argument };
        self.boxed(inner)
    }

    fn binary(&mut self, node: Node<'_>) -> Lower<Expr> {
        // `a + b + c` leans to the left: the spine is walked, not descended, so that long chains are not deep.
        let mut spine = Vec::new();
        let mut at = node;
        while at.kind() == "binary_expression" {
            spine.push(at);
            at = self.field(at, "left")?;
        }
        let mut left = self.expression(at)?;
        if spine.len() > DEPTH_MAX as usize * 4 {
            return Err(self.refuse(
                node,
                "",
                format!("an operator may be repeated {} times", DEPTH_MAX * 4),
            ));
        }
        for node in spine.into_iter().rev() {
            let operator_node = self.field(node, "operator")?;
            let operator = self.text(operator_node);
            let right_node = self.field(node, "right")?;
            let right = self.expression(right_node)?;
            let line = self.line(operator_node);
            let pair = Box::new((left, right));
            left = match operator {
                "+" => Expr::Arithmetic(Operator::Add, pair, line),
                "-" => Expr::Arithmetic(Operator::Subtract, pair, line),
                "*" => Expr::Arithmetic(Operator::Multiply, pair, line),
                "/" => Expr::Arithmetic(Operator::Divide, pair, line),
                "%" => Expr::Arithmetic(Operator::Remainder, pair, line),
                "==" => Expr::Compare(Comparison::Equal, pair, line),
                "!=" => Expr::Compare(Comparison::NotEqual, pair, line),
                "<" => Expr::Compare(Comparison::Less, pair, line),
                "<=" => Expr::Compare(Comparison::LessOrEqual, pair, line),
                ">" => Expr::Compare(Comparison::Greater, pair, line),
                ">=" => Expr::Compare(Comparison::GreaterOrEqual, pair, line),
                "&&" | "&" => Expr::And(pair),
                "||" | "|" => Expr::Or(pair),
                "??" => {
                    // It leans to the right, which the grammar knows.
                    Expr::Coalesce(pair)
                }
                _ => return Err(self.unsupported(operator_node, operator)),
            };
        }
        Ok(left)
    }

    fn prefix(&mut self, node: Node<'_>) -> Lower<Expr> {
        let operator = node.child(0).map(|child| self.text(child)).unwrap_or_default();
        let inner = self.only_child(node)?;
        let line = self.line(node);
        match operator {
            "!" => Ok(Expr::Not(self.boxed(inner)?, line)),
            "-" => Ok(match self.expression(inner)? {
                Expr::Long(value) => Expr::Long(value.wrapping_neg()),
                Expr::Double(value) => Expr::Double(-value),
                Expr::Decimal(value) => Expr::Decimal(-value),
                value => Expr::Negate(Box::new(value), line),
            }),
            "+" => self.expression(inner),
            _ => Err(self.unsupported(node, operator)),
        }
    }

    fn cast(&mut self, node: Node<'_>) -> Lower<Expr> {
        let of = self.field(node, "type")?;
        let value = self.field(node, "value")?;
        // `(x.A) - 1` looks like a cast of -1 to the type `x.A`; a variable's name tells.
        let first = self.text(of).split('.').next().unwrap_or_default().trim();
        if self.lookup(first).is_some() && matches!(of.kind(), "identifier" | "qualified_name") {
            let left = self.path(of)?;
            let line = self.line(value);
            let operator = value.child(0).map(|child| self.text(child)).unwrap_or_default();
            let operator = match (value.kind(), operator) {
                ("prefix_unary_expression", "-") => Operator::Subtract,
                ("prefix_unary_expression", "+") => Operator::Add,
                _ => return Err(self.unsupported(node, "cast to a variable")),
            };
            let inner = self.only_child(value)?;
            let right = self.expression(inner)?;
            return Ok(Expr::Arithmetic(operator, Box::new((left, right)), line));
        }
        let (to, nullable) = self.type_of(of)?;
        let value = self.boxed(value)?;
        Ok(match to {
            Type::Object | Type::Sequence => *value,
            _ => Expr::Cast { to, nullable, value, line: self.line(node) },
        })
    }

    /// `x.A.B` where the grammar took it for the name of a type.
    fn path(&mut self, node: Node<'_>) -> Lower<Expr> {
        match node.kind() {
            "qualified_name" => {
                let qualifier = self.field(node, "qualifier")?;
                let name = self.text(self.field(node, "name")?);
                let target = Box::new(self.path(qualifier)?);
                Ok(self.member_of(target, name, node))
            }
            "identifier" => self.identifier(node),
            _ => Err(self.unsupported(node, node.kind())),
        }
    }

    /// A type, and whether it is nullable.
    pub(super) fn type_of(&self, node: Node<'_>) -> Lower<(Type, bool)> {
        match node.kind() {
            "nullable_type" => {
                let inner = self.field(node, "type").or_else(|_| self.only_child(node))?;
                Ok((self.type_of(inner)?.0, true))
            }
            "array_type" => Ok((Type::Sequence, true)),
            "generic_name" => {
                let name = self.text(node).split('<').next().unwrap_or_default().trim();
                match name {
                    "IEnumerable" | "List" | "IList" | "ICollection" | "HashSet" | "DynamicArray" => {
                        Ok((Type::Sequence, true))
                    }
                    "Nullable" => {
                        let list = self.only_named(node, "type_argument_list")?;
                        let inner = self.only_child(list)?;
                        Ok((self.type_of(inner)?.0, true))
                    }
                    "Dictionary" | "IDictionary" | "Func" | "KeyValuePair" | "IGrouping" => {
                        Ok((Type::Object, true))
                    }
                    _ => Err(self.refuse(node, name, format!("the type `{name}` is not known"))),
                }
            }
            _ => {
                let text: String = self.text(node).chars().filter(|c| !c.is_whitespace()).collect();
                let name = text.strip_prefix("System.").unwrap_or(&text);
                Ok(match name {
                    "object" | "dynamic" | "Object" | "var" => (Type::Object, true),
                    "byte" | "Byte" | "sbyte" | "SByte" => (Type::Byte, false),
                    "short" | "Int16" | "ushort" | "UInt16" => (Type::Short, false),
                    "int" | "Int32" => (Type::Int, false),
                    "long" | "Int64" | "uint" | "UInt32" | "ulong" | "UInt64" => (Type::Long, false),
                    "float" | "Single" => (Type::Float, false),
                    "double" | "Double" => (Type::Double, false),
                    "decimal" | "Decimal" => (Type::Decimal, false),
                    "bool" | "Boolean" => (Type::Bool, false),
                    "char" | "Char" => (Type::Char, false),
                    "string" | "String" => (Type::Text, true),
                    "DateTime" => (Type::Date, false),
                    "DateTimeOffset" => (Type::DateOffset, false),
                    "TimeSpan" => (Type::TimeSpan, false),
                    "Guid" => (Type::Guid, false),
                    "IEnumerable" | "Collections.IEnumerable" | "DynamicArray" => (Type::Sequence, true),
                    _ => return Err(self.refuse(node, &text, format!("the type `{text}` is not known"))),
                })
            }
        }
    }

    fn only_named<'t>(&self, node: Node<'t>, kind: &str) -> Lower<Node<'t>> {
        named(node)
            .into_iter()
            .find(|child| child.kind() == kind)
            .ok_or_else(|| self.unsupported(node, node.kind()))
    }

    // Lambdas.

    /// The lambda that an argument is, out of parentheses and of casts to delegates.
    pub(super) fn as_lambda<'t>(&self, node: Node<'t>) -> Option<Node<'t>> {
        let mut node = node;
        for _ in 0..16 {
            node = match node.kind() {
                "lambda_expression" => return Some(node),
                "parenthesized_expression" => named(node).first().copied()?,
                "cast_expression" => node.child_by_field_name("value")?,
                _ => return None,
            };
        }
        None
    }

    pub(super) fn lambda(&mut self, node: Node<'_>) -> Lower<Lambda> {
        if self.depth >= DEPTH_MAX {
            return Err(self.refuse(node, "", format!("expressions may be {DEPTH_MAX} deep")));
        }
        self.depth += 1;
        let scope = self.enter();
        let result = self.lambda_in_scope(node);
        self.leave(scope);
        self.depth -= 1;
        result
    }

    fn lambda_in_scope(&mut self, node: Node<'_>) -> Lower<Lambda> {
        let parameters = self.field(node, "parameters")?;
        let names = match parameters.kind() {
            "implicit_parameter" | "identifier" => vec![parameters],
            _ => named(parameters)
                .into_iter()
                .map(|parameter| self.field(parameter, "name"))
                .collect::<Lower<Vec<_>>>()?,
        };
        let mut slots = Vec::new();
        for name in names {
            slots.push(self.declare(name, self.text(name))?);
        }
        let body = self.field(node, "body")?;
        let body =
            if body.kind() == "block" { self.block(body, &named(body))? } else { self.expression(body)? };
        Ok(Lambda { parameters: slots.into(), body })
    }

    /// Statements that end in `return`: declarations, conditions, the result.
    pub(super) fn block(&mut self, block: Node<'_>, statements: &[Node<'_>]) -> Lower<Expr> {
        let mut variables = Vec::new();
        for (place, statement) in statements.iter().enumerate() {
            let result = match statement.kind() {
                "local_declaration_statement" => {
                    for declaration in named(*statement) {
                        for variable in
                            named(declaration).into_iter().filter(|node| node.kind() == "variable_declarator")
                        {
                            let parts = named(variable);
                            let [name, .., value] = parts[..] else {
                                return Err(self.unsupported(variable, "variable without a value"));
                            };
                            let value = if value.kind() == "equals_value_clause" {
                                self.only_child(value)?
                            } else {
                                value
                            };
                            let value = self.expression(value)?;
                            variables.push((self.declare(name, self.text(name))?, value));
                        }
                    }
                    continue;
                }
                "empty_statement" => continue,
                "return_statement" => {
                    let value = self.only_child(*statement)?;
                    self.expression(value)?
                }
                "block" => self.block(*statement, &named(*statement))?,
                "if_statement" => {
                    let condition = self.field(*statement, "condition")?;
                    let consequence = self.field(*statement, "consequence")?;
                    let condition = self.expression(condition)?;
                    let scope = self.enter();
                    let then = self.block(consequence, &[consequence])?;
                    self.leave(scope);
                    let otherwise = match statement.child_by_field_name("alternative") {
                        Some(alternative) => self.block(alternative, &[alternative])?,
                        None => {
                            if self.depth >= DEPTH_MAX {
                                return Err(self.refuse(
                                    *statement,
                                    "",
                                    format!("expressions may be {DEPTH_MAX} deep"),
                                ));
                            }
                            self.depth += 1;
                            let rest = self.block(block, &statements[place + 1..]);
                            self.depth -= 1;
                            rest?
                        }
                    };
                    Expr::Conditional(Box::new((condition, then, otherwise)))
                }
                kind => {
                    let shown = kind.trim_end_matches("_statement").replace('_', " ");
                    return Err(self.unsupported(*statement, &shown));
                }
            };
            if variables.is_empty() {
                return Ok(result);
            }
            return Ok(Expr::Block { variables: variables.into(), result: Box::new(result) });
        }
        Err(self.refuse(block, "block", "the block ends without `return`".to_owned()))
    }
}
