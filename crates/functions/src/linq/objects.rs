//! `new`: anonymous objects, arrays, dictionaries, dates.

use tree_sitter::Node;

use super::lower::{Lower, Lowering};
use super::syntax::{children, named};
use crate::program::{Expr, Function};

impl Lowering<'_> {
    /// `new { A = a, b.C, d }`; a member without a name has that of the last member in it.
    pub(super) fn anonymous_object(&mut self, node: Node<'_>) -> Lower<Expr> {
        let parts = children(node);
        let mut names: Vec<Box<str>> = Vec::new();
        let mut values = Vec::new();
        let mut at = 0;
        while let Some(part) = parts.get(at) {
            if !part.is_named() {
                at += 1;
                continue;
            }
            let (name, value) = if parts.get(at + 1).is_some_and(|next| next.kind() == "=") {
                let Some(value) = parts.get(at + 2) else {
                    return Err(self.unsupported(*part, "member without a value"));
                };
                at += 3;
                (self.text(*part), *value)
            } else {
                at += 1;
                (self.implied_name(*part)?, *part)
            };
            let name = name.trim_start_matches('@');
            if names.iter().any(|known| **known == *name) {
                let message = format!("the name `{name}` is given twice");
                return Err(self.refuse(*part, name, message));
            }
            names.push(name.into());
            values.push(self.expression(value)?);
        }
        Ok(Expr::Object { names: names.into(), values: values.into() })
    }

    /// The name of a member that is given without one.
    fn implied_name<'n>(&self, node: Node<'n>) -> Lower<&str> {
        let name = match node.kind() {
            "identifier" => Some(node),
            "member_access_expression" | "member_binding_expression" => node.child_by_field_name("name"),
            "conditional_access_expression" => {
                return match named(node).last() {
                    Some(last) => self.implied_name(*last),
                    None => Err(self.unsupported(node, "member without a name")),
                };
            }
            _ => None,
        };
        match name {
            Some(name) if name.kind() == "identifier" => Ok(self.text(name)),
            _ => Err(self.refuse(
                node,
                "member without a name",
                "a member that is no plain property needs a name: `Name = ...`".to_owned(),
            )),
        }
    }

    pub(super) fn array_creation(&mut self, node: Node<'_>) -> Lower<Expr> {
        let Some(initializer) =
            named(node).into_iter().find(|child| child.kind() == "initializer_expression")
        else {
            // `new string[0]`
            let empty =
                self.text(node).chars().filter(|c| !c.is_whitespace()).collect::<String>().ends_with("[0]");
            return if empty {
                Ok(Expr::Array(Box::default()))
            } else {
                Err(self.unsupported(node, "array without values"))
            };
        };
        Ok(Expr::Array(self.all(&named(initializer))?))
    }

    pub(super) fn object_creation(&mut self, node: Node<'_>) -> Lower<Expr> {
        let of = self.field(node, "type")?;
        let whole: String = self.text(of).chars().filter(|c| !c.is_whitespace()).collect();
        let name = whole.split('<').next().unwrap_or_default();
        let name = name.rsplit('.').next().unwrap_or_default();
        let arguments = match node.child_by_field_name("arguments") {
            Some(arguments) => self.arguments(arguments)?,
            None => Vec::new(),
        };
        let initializer = node.child_by_field_name("initializer");
        let line = self.line(node);
        match (name, initializer) {
            ("DateTime", None) if matches!(arguments.len(), 0 | 1 | 3 | 6 | 7 | 8) => {
                Ok(Expr::Function { function: Function::NewDate, args: self.all(&arguments)?, line })
            }
            ("DateTimeOffset", None) if matches!(arguments.len(), 0 | 1) => {
                Ok(Expr::Function { function: Function::NewDate, args: self.all(&arguments)?, line })
            }
            ("TimeSpan", None) if matches!(arguments.len(), 1 | 3 | 4 | 5) => {
                Ok(Expr::Function { function: Function::NewTimeSpan, args: self.all(&arguments)?, line })
            }
            ("Guid", None) if arguments.len() == 1 => {
                Ok(Expr::Function { function: Function::GuidParse, args: self.all(&arguments)?, line })
            }
            ("List" | "HashSet" | "DynamicArray", None) => match arguments[..] {
                [] => Ok(Expr::Array(Box::default())),
                [of] => self.expression(of),
                _ => Err(self.unsupported(node, name)),
            },
            ("List" | "HashSet", Some(initializer)) if arguments.is_empty() => {
                Ok(Expr::Array(self.all(&named(initializer))?))
            }
            ("Dictionary", None) if arguments.is_empty() => Ok(Expr::Dictionary(Box::default(), line)),
            ("Dictionary", Some(initializer)) if arguments.is_empty() => self.dictionary(initializer, line),
            ("KeyValuePair", None) if arguments.len() == 2 => Ok(Expr::Object {
                names: ["Key".into(), "Value".into()].into(),
                values: self.all(&arguments)?,
            }),
            ("CreateFieldOptions", Some(initializer)) if arguments.is_empty() => self.options(initializer),
            ("CreateFieldOptions", None) if arguments.is_empty() => {
                Ok(Expr::Object { names: Box::default(), values: Box::default() })
            }
            _ => Err(self.refuse(
                node,
                &format!("new {whole}"),
                format!("`new {whole}` is not supported in this form"),
            )),
        }
    }

    /// `{ { key, value }, [key] = value }`.
    fn dictionary(&mut self, initializer: Node<'_>, line: u32) -> Lower<Expr> {
        let mut pairs = Vec::new();
        for pair in named(initializer) {
            let (key, value) = match pair.kind() {
                "initializer_expression" => match named(pair)[..] {
                    [key, value] => (key, value),
                    _ => return Err(self.unsupported(pair, "dictionary element")),
                },
                "assignment_expression" => {
                    let left = self.field(pair, "left")?;
                    let argument = self.only_child(left)?;
                    (self.only_child(argument)?, self.field(pair, "right")?)
                }
                _ => return Err(self.unsupported(pair, "dictionary element")),
            };
            pairs.push((self.expression(key)?, self.expression(value)?));
        }
        Ok(Expr::Dictionary(pairs.into(), line))
    }

    /// `{ Name = value, ... }`.
    fn options(&mut self, initializer: Node<'_>) -> Lower<Expr> {
        let (mut names, mut values): (Vec<Box<str>>, Vec<Expr>) = Default::default();
        for option in named(initializer) {
            let (left, right) = (self.field(option, "left")?, self.field(option, "right")?);
            let name = self.text(left);
            if !matches!(name, "Storage" | "Indexing" | "TermVector") {
                return Err(self.unsupported(option, name));
            }
            names.push(name.into());
            values.push(self.expression(right)?);
        }
        Ok(Expr::Object { names: names.into(), values: values.into() })
    }
}
