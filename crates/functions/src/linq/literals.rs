//! Numbers, strings and characters as C# writes them.

use rust_decimal::Decimal;
use tree_sitter::Node;

use super::lower::{Lower, Lowering};
use super::syntax::{children, named, unescape};
use crate::program::{Expr, Function, Type};

impl Type {
    /// `default(Type)`.
    pub(super) fn default_value(self) -> Expr {
        match self {
            Type::Byte | Type::Short | Type::Int | Type::Long => Expr::Long(0),
            Type::Float | Type::Double => Expr::Double(0.0),
            Type::Decimal => Expr::Decimal(Decimal::ZERO),
            Type::Bool => Expr::Bool(false),
            Type::Char => Expr::Text("\0".into()),
            Type::Date | Type::DateOffset => Expr::Date(Default::default()),
            Type::TimeSpan => Expr::TimeSpan(0),
            Type::Guid => Expr::Text(super::statics::EMPTY_GUID.into()),
            Type::Object | Type::Text | Type::Sequence => Expr::Null,
        }
    }
}

impl Lowering<'_> {
    pub(super) fn literal(&mut self, node: Node<'_>) -> Lower<Expr> {
        let text = self.text(node);
        Ok(match node.kind() {
            "null_literal" => Expr::Null,
            "boolean_literal" => Expr::Bool(text == "true"),
            "integer_literal" => match integer(text) {
                Some(value) => Expr::Long(value),
                None => return Err(self.refuse(node, "integer", format!("`{text}` is beyond 64 bits"))),
            },
            "real_literal" => match real(text) {
                Some(value) => value,
                None => return Err(self.refuse(node, "number", format!("`{text}` is no number"))),
            },
            "string_literal" | "character_literal" => Expr::Text(self.content(node)?.into()),
            "verbatim_string_literal" => {
                let inner = text.strip_prefix("@\"").and_then(|text| text.strip_suffix('"')).unwrap_or(text);
                Expr::Text(inner.replace("\"\"", "\"").into())
            }
            _ => return Err(self.unsupported(node, &node.kind().replace('_', " "))),
        })
    }

    /// The content of a string or character, its escapes replaced.
    fn content(&self, node: Node<'_>) -> Lower<String> {
        let mut out = String::new();
        for part in named(node) {
            let text = self.text(part);
            if part.kind() == "escape_sequence" {
                match unescape(text) {
                    Some(character) => out.push(character),
                    None => return Err(self.refuse(part, text, format!("`{text}` is no escape"))),
                }
            } else {
                out.push_str(text);
            }
        }
        Ok(out)
    }

    pub(super) fn interpolated(&mut self, node: Node<'_>) -> Lower<Expr> {
        let mut parts: Vec<Expr> = Vec::new();
        let mut text = String::new();
        let verbatim = node.child(0).is_some_and(|start| self.text(start).contains('@'));
        for child in children(node) {
            match child.kind() {
                "string_content" => {
                    let content = self.text(child).replace("{{", "{").replace("}}", "}");
                    text.push_str(&if verbatim { content.replace("\"\"", "\"") } else { content });
                }
                "escape_sequence" => {
                    let escape = self.text(child);
                    match escape {
                        "{{" => text.push('{'),
                        "}}" => text.push('}'),
                        "\"\"" => text.push('"'),
                        _ => match unescape(escape) {
                            Some(character) => text.push(character),
                            None => {
                                return Err(self.refuse(child, escape, format!("`{escape}` is no escape")));
                            }
                        },
                    }
                }
                "interpolation" => {
                    if !text.is_empty() {
                        parts.push(Expr::Text(std::mem::take(&mut text).into()));
                    }
                    parts.push(self.interpolation(child)?);
                }
                _ => {}
            }
        }
        if !text.is_empty() {
            parts.push(Expr::Text(text.into()));
        }
        let line = self.line(node);
        Ok(Expr::Function { function: Function::ConcatText, args: parts.into(), line })
    }

    fn interpolation(&mut self, node: Node<'_>) -> Lower<Expr> {
        let (mut value, mut width, mut format) = (None, 0, "");
        for child in named(node) {
            match child.kind() {
                "interpolation_brace" => {}
                "interpolation_alignment_clause" => {
                    let text = self.text(child).trim_start_matches(',').trim();
                    width = text
                        .parse()
                        .map_err(|_| self.refuse(child, "alignment", format!("`{text}` is no width")))?;
                }
                "interpolation_format_clause" => format = self.text(child).trim_start_matches(':'),
                _ => value = Some(self.boxed(child)?),
            }
        }
        let Some(value) = value else { return Err(self.unsupported(node, "empty interpolation")) };
        Ok(Expr::Formatted { value, width, format: format.into(), line: self.line(node) })
    }
}

fn integer(text: &str) -> Option<i64> {
    let text: String = text.chars().filter(|c| *c != '_').collect::<String>().to_ascii_lowercase();
    let text = text.trim_end_matches(['l', 'u']);
    if let Some(digits) = text.strip_prefix("0x") {
        return i64::from_str_radix(digits, 16).ok();
    }
    if let Some(digits) = text.strip_prefix("0b") {
        return i64::from_str_radix(digits, 2).ok();
    }
    text.parse().ok()
}

fn real(text: &str) -> Option<Expr> {
    let text: String = text.chars().filter(|c| *c != '_').collect::<String>().to_ascii_lowercase();
    if let Some(digits) = text.strip_suffix('m') {
        let value = digits.parse::<Decimal>().or_else(|_| Decimal::from_scientific(digits));
        return Some(Expr::Decimal(value.ok()?));
    }
    if let Some(digits) = text.strip_suffix('f') {
        return Some(Expr::Double(f64::from(digits.parse::<f32>().ok()?)));
    }
    Some(Expr::Double(text.trim_end_matches('d').parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        for (text, value) in [("1", 1), ("1_000L", 1000), ("0xFFul", 255), ("0b101", 5)] {
            assert_eq!(integer(text), Some(value), "{text}");
        }
        assert_eq!(integer("9223372036854775808"), None);
        assert!(matches!(real("1.50M"), Some(Expr::Decimal(value)) if value == Decimal::new(150, 2)));
        assert!(matches!(real("1e3"), Some(Expr::Double(1000.0))));
        assert!(matches!(real("2.5f"), Some(Expr::Double(2.5))));
        assert!(real("1e").is_none());
    }
}
