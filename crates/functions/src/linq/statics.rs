//! The static classes of .NET that functions may use: their members and methods.

use jackdaw_document::date::{Date, TICKS_MAX, Zone};
use regex::RegexBuilder;
use rust_decimal::Decimal;
use tree_sitter::Node;

use super::lower::{Lower, Lowering};
use crate::program::{Expr, Function, Type};

pub(super) const EMPTY_GUID: &str = "00000000-0000-0000-0000-000000000000";

/// A compiled regular expression may take this much memory.
const PATTERN_SIZE_MAX: usize = 1 << 20;

impl Lowering<'_> {
    /// The name of the static class that a node names, if it does.
    pub(super) fn static_class(&self, node: Node<'_>) -> Option<String> {
        if !matches!(
            node.kind(),
            "identifier" | "predefined_type" | "member_access_expression" | "qualified_name" | "generic_name"
        ) {
            return None;
        }
        let text: String = self.text(node).chars().filter(|c| !c.is_whitespace()).collect();
        if self.lookup(text.split('.').next().unwrap_or_default()).is_some() {
            return None;
        }
        let name = text.strip_prefix("System.").unwrap_or(&text);
        let name = ["Text.RegularExpressions.", "Linq.", "Globalization.", "Collections.Generic."]
            .iter()
            .find_map(|prefix| name.strip_prefix(prefix))
            .unwrap_or(name);
        let name = match name {
            "string" | "String" => "String",
            "int" | "Int32" => "Int32",
            "long" | "Int64" => "Int64",
            "short" | "Int16" => "Int16",
            "byte" | "Byte" => "Byte",
            "float" | "Single" => "Single",
            "double" | "Double" => "Double",
            "decimal" | "Decimal" => "Decimal",
            "bool" | "Boolean" => "Boolean",
            "char" | "Char" => "Char",
            "object" | "Object" => "Object",
            "Math" | "DateTime" | "DateTimeOffset" | "TimeSpan" | "Guid" | "Regex" | "Convert"
            | "Enumerable" | "DayOfWeek" | "StringComparison" | "StringSplitOptions" | "CultureInfo"
            | "FieldStorage" | "FieldIndexing" | "FieldTermVector" | "MidpointRounding" | "DateTimeKind"
            | "RegexOptions" | "StringComparer" => name,
            _ => return None,
        };
        Some(name.to_owned())
    }

    /// The class of an additional source that a node names, if it does.
    pub(super) fn source_class(&self, node: Node<'_>) -> Option<String> {
        if !matches!(node.kind(), "identifier" | "member_access_expression" | "qualified_name") {
            return None;
        }
        let text: String = self.text(node).chars().filter(|c| !c.is_whitespace()).collect();
        let is_variable = self.lookup(text.split('.').next().unwrap_or_default()).is_some();
        (!is_variable && self.declared.has_class(&text)).then_some(text)
    }

    /// `Class.Name`.
    pub(super) fn static_member(&mut self, node: Node<'_>, class: &str, name: &str) -> Lower<Expr> {
        let max = Date { ticks: TICKS_MAX, zone: Zone::Unspecified };
        Ok(match (class, name) {
            ("String", "Empty") => Expr::Text("".into()),
            ("Guid", "Empty") => Expr::Text(EMPTY_GUID.into()),
            ("DateTime", "MinValue") => Expr::Date(Date::default()),
            ("DateTimeOffset", "MinValue") => Expr::Date(Date { ticks: 0, zone: Zone::Offset(0) }),
            ("DateTime" | "DateTimeOffset", "MaxValue") => Expr::Date(max),
            ("DateTime" | "DateTimeOffset", "Now" | "UtcNow" | "Today") => {
                let message = format!(
                    "`{class}.{name}` gives another result each time; a function gives the same for the same document"
                );
                return Err(self.refuse(node, &format!("{class}.{name}"), message));
            }
            ("TimeSpan", "Zero") => Expr::TimeSpan(0),
            ("TimeSpan", "MinValue") => Expr::TimeSpan(i64::MIN),
            ("TimeSpan", "MaxValue") => Expr::TimeSpan(i64::MAX),
            ("TimeSpan", "TicksPerDay") => Expr::Long(864_000_000_000),
            ("TimeSpan", "TicksPerHour") => Expr::Long(36_000_000_000),
            ("TimeSpan", "TicksPerMinute") => Expr::Long(600_000_000),
            ("TimeSpan", "TicksPerSecond") => Expr::Long(10_000_000),
            ("TimeSpan", "TicksPerMillisecond") => Expr::Long(10_000),
            ("Int32", "MaxValue") => Expr::Long(i64::from(i32::MAX)),
            ("Int32", "MinValue") => Expr::Long(i64::from(i32::MIN)),
            ("Int64", "MaxValue") => Expr::Long(i64::MAX),
            ("Int64", "MinValue") => Expr::Long(i64::MIN),
            ("Double", "MaxValue") => Expr::Double(f64::MAX),
            ("Double", "MinValue") => Expr::Double(f64::MIN),
            ("Double", "NaN") => Expr::Double(f64::NAN),
            ("Double", "PositiveInfinity") => Expr::Double(f64::INFINITY),
            ("Double", "NegativeInfinity") => Expr::Double(f64::NEG_INFINITY),
            ("Double", "Epsilon") => Expr::Double(5e-324),
            ("Decimal", "MaxValue") => Expr::Decimal(Decimal::MAX),
            ("Decimal", "MinValue") => Expr::Decimal(Decimal::MIN),
            ("Decimal", "Zero") => Expr::Decimal(Decimal::ZERO),
            ("Decimal", "One") => Expr::Decimal(Decimal::ONE),
            ("Math", "PI") => Expr::Double(std::f64::consts::PI),
            ("Math", "E") => Expr::Double(std::f64::consts::E),
            (
                "DayOfWeek",
                "Sunday" | "Monday" | "Tuesday" | "Wednesday" | "Thursday" | "Friday" | "Saturday",
            )
            | (
                "StringComparison" | "StringComparer",
                "Ordinal"
                | "OrdinalIgnoreCase"
                | "InvariantCulture"
                | "InvariantCultureIgnoreCase"
                | "CurrentCulture"
                | "CurrentCultureIgnoreCase",
            )
            | ("StringSplitOptions", "None" | "RemoveEmptyEntries" | "TrimEntries")
            | ("FieldStorage", "Yes" | "No")
            | ("FieldIndexing", "No" | "Search" | "Exact" | "Default")
            | (
                "FieldTermVector",
                "No" | "Yes" | "WithPositions" | "WithOffsets" | "WithPositionsAndOffsets",
            )
            | (
                "MidpointRounding",
                "ToEven" | "AwayFromZero" | "ToZero" | "ToNegativeInfinity" | "ToPositiveInfinity",
            )
            | ("DateTimeKind", "Utc" | "Local" | "Unspecified")
            | (
                "RegexOptions",
                "None"
                | "IgnoreCase"
                | "Multiline"
                | "Singleline"
                | "Compiled"
                | "CultureInvariant"
                | "IgnorePatternWhitespace",
            ) => Expr::Text(name.into()),
            ("CultureInfo", "InvariantCulture" | "CurrentCulture") => Expr::Text("Invariant".into()),
            _ => return Err(self.unsupported(node, &format!("{class}.{name}"))),
        })
    }

    /// `Class.Name(arguments)`.
    pub(super) fn static_call(
        &mut self,
        node: Node<'_>,
        class: &str,
        name: &str,
        name_node: Node<'_>,
        list: Node<'_>,
    ) -> Lower<Expr> {
        let nodes = self.arguments(list)?;
        let line = self.line(node);
        if class == "Enumerable" {
            return self.enumerable(node, name, name_node, &nodes);
        }
        if class == "Regex" {
            return self.regex(node, name, &nodes);
        }
        let (function, least, most) = match (class, name) {
            ("Math", "Abs") => (Function::Abs, 1, 1),
            ("Math" | "Decimal", "Round") => (Function::Round, 1, 3),
            ("Math" | "Decimal", "Floor") => (Function::Floor, 1, 1),
            ("Math" | "Decimal", "Ceiling") => (Function::Ceiling, 1, 1),
            ("Math" | "Decimal", "Truncate") => (Function::Truncate, 1, 1),
            ("Math", "Min") => (Function::MathMin, 2, 2),
            ("Math", "Max") => (Function::MathMax, 2, 2),
            ("Math", "Pow") => (Function::Pow, 2, 2),
            ("Math", "Sqrt") => (Function::Sqrt, 1, 1),
            ("Math", "Sign") => (Function::Sign, 1, 1),
            ("Math", "Exp") => (Function::Exp, 1, 1),
            ("Math", "Log") => (Function::Log, 1, 2),
            ("Math", "Log10") => (Function::Log10, 1, 1),
            ("Math", "Sin") => (Function::Sin, 1, 1),
            ("Math", "Cos") => (Function::Cos, 1, 1),
            ("Math", "Tan") => (Function::Tan, 1, 1),
            ("Math", "Asin") => (Function::Asin, 1, 1),
            ("Math", "Acos") => (Function::Acos, 1, 1),
            ("Math", "Atan") => (Function::Atan, 1, 1),
            ("Math", "Atan2") => (Function::Atan2, 2, 2),
            ("String", "Format") => (Function::Format, 1, 64),
            ("String", "Join") => (Function::JoinText, 2, 64),
            ("String", "Concat") => (Function::ConcatText, 1, 64),
            ("String", "IsNullOrEmpty") => (Function::IsNullOrEmpty, 1, 1),
            ("String", "IsNullOrWhiteSpace") => (Function::IsNullOrWhiteSpace, 1, 1),
            ("String", "Compare") => (Function::CompareText, 2, 3),
            ("String", "CompareOrdinal") => (Function::CompareOrdinal, 2, 2),
            ("String", "Equals") => (Function::EqualsStatic, 2, 3),
            (_, "Equals" | "ReferenceEquals") => (Function::EqualsStatic, 2, 2),
            ("DateTime" | "DateTimeOffset", "Parse") => (Function::ParseDate, 1, 2),
            ("DateTime", "DaysInMonth") => (Function::DaysInMonth, 2, 2),
            ("DateTime", "IsLeapYear") => (Function::IsLeapYear, 1, 1),
            ("TimeSpan", "Parse") => (Function::ParseTimeSpan, 1, 2),
            ("TimeSpan", "FromDays") => (Function::FromDays, 1, 1),
            ("TimeSpan", "FromHours") => (Function::FromHours, 1, 1),
            ("TimeSpan", "FromMinutes") => (Function::FromMinutes, 1, 1),
            ("TimeSpan", "FromSeconds") => (Function::FromSeconds, 1, 1),
            ("TimeSpan", "FromMilliseconds") => (Function::FromMilliseconds, 1, 1),
            ("TimeSpan", "FromTicks") => (Function::FromTicks, 1, 1),
            ("Guid", "Parse") => (Function::GuidParse, 1, 1),
            ("Int32", "Parse") => (Function::Parse(Type::Int), 1, 2),
            ("Int64", "Parse") => (Function::Parse(Type::Long), 1, 2),
            ("Int16", "Parse") => (Function::Parse(Type::Short), 1, 2),
            ("Byte", "Parse") => (Function::Parse(Type::Byte), 1, 2),
            ("Double", "Parse") => (Function::Parse(Type::Double), 1, 2),
            ("Single", "Parse") => (Function::Parse(Type::Float), 1, 2),
            ("Decimal", "Parse") => (Function::Parse(Type::Decimal), 1, 2),
            ("Boolean", "Parse") => (Function::Parse(Type::Bool), 1, 1),
            ("Double", "IsNaN") => (Function::IsNan, 1, 1),
            ("Double", "IsInfinity") => (Function::IsInfinity, 1, 1),
            ("Convert", "ToInt16") => (Function::Convert(Type::Short), 1, 2),
            ("Convert", "ToInt32") => (Function::Convert(Type::Int), 1, 2),
            ("Convert", "ToInt64") => (Function::Convert(Type::Long), 1, 2),
            ("Convert", "ToByte") => (Function::Convert(Type::Byte), 1, 2),
            ("Convert", "ToDouble") => (Function::Convert(Type::Double), 1, 2),
            ("Convert", "ToSingle") => (Function::Convert(Type::Float), 1, 2),
            ("Convert", "ToDecimal") => (Function::Convert(Type::Decimal), 1, 2),
            ("Convert", "ToString") => (Function::Convert(Type::Text), 1, 2),
            ("Convert", "ToBoolean") => (Function::Convert(Type::Bool), 1, 2),
            ("Convert", "ToDateTime") => (Function::Convert(Type::Date), 1, 2),
            ("Char", "IsDigit" | "IsNumber") => (Function::IsDigit, 1, 1),
            ("Char", "IsLetter") => (Function::IsLetter, 1, 1),
            ("Char", "IsLetterOrDigit") => (Function::IsLetterOrDigit, 1, 1),
            ("Char", "IsUpper") => (Function::IsUpper, 1, 1),
            ("Char", "IsLower") => (Function::IsLower, 1, 1),
            ("Char", "IsWhiteSpace") => (Function::IsWhiteSpace, 1, 1),
            _ => return Err(self.unsupported(node, &format!("{class}.{name}"))),
        };
        if nodes.len() < least || nodes.len() > most {
            let expected = if least == most { least.to_string() } else { format!("{least} to {most}") };
            return Err(self.wrong_count(node, &format!("{class}.{name}"), &expected, nodes.len()));
        }
        Ok(Expr::Function { function, args: self.all(&nodes)?, line })
    }

    /// `Enumerable.Sum(g, x => ..)` is `g.Sum(x => ..)`; some have no value to be called on.
    fn enumerable(
        &mut self,
        node: Node<'_>,
        name: &str,
        name_node: Node<'_>,
        nodes: &[Node<'_>],
    ) -> Lower<Expr> {
        let line = self.line(node);
        match (name, nodes) {
            ("Empty", []) => Ok(Expr::Array(Box::default())),
            ("Range", [_, _]) => {
                Ok(Expr::Function { function: Function::Range, args: self.all(nodes)?, line })
            }
            ("Repeat", [_, _]) => {
                Ok(Expr::Function { function: Function::Repeat, args: self.all(nodes)?, line })
            }
            (_, [target, arguments @ ..]) => {
                let target = self.expression(*target)?;
                self.method_with(node, target, name_node, arguments)
            }
            _ => Err(self.unsupported(node, &format!("Enumerable.{name}"))),
        }
    }

    /// Patterns are constants, so that one that is not supported is refused now.
    fn regex(&mut self, node: Node<'_>, name: &str, nodes: &[Node<'_>]) -> Lower<Expr> {
        let line = self.line(node);
        let shown = format!("Regex.{name}");
        let values = usize::from(name == "Replace");
        if nodes.len() < 2 + values || nodes.len() > 3 + values {
            return Err(self.wrong_count(
                node,
                &shown,
                &format!("{} to {}", 2 + values, 3 + values),
                nodes.len(),
            ));
        }
        let Expr::Text(pattern) = self.expression(nodes[1])? else {
            return Err(self.refuse(nodes[1], &shown, format!("the pattern of `{shown}` is a constant")));
        };
        let options = nodes.get(2 + values).map(|options| self.text(*options)).unwrap_or_default();
        let regex = RegexBuilder::new(&pattern)
            .case_insensitive(options.contains("IgnoreCase"))
            .multi_line(options.contains("Multiline"))
            .dot_matches_new_line(options.contains("Singleline"))
            .ignore_whitespace(options.contains("IgnorePatternWhitespace"))
            .size_limit(PATTERN_SIZE_MAX)
            .build()
            .map_err(|error| {
                let reason = error.to_string();
                let reason = reason.lines().last().unwrap_or_default().trim().to_owned();
                self.refuse(nodes[1], &shown, format!("the pattern of `{shown}` is not supported: {reason}"))
            })?;
        let number = self.patterns.len() as u32;
        self.patterns.push(regex);
        let function = match name {
            "IsMatch" => Function::RegexIsMatch(number),
            "Match" => Function::RegexMatch(number),
            "Matches" => Function::RegexMatches(number),
            "Replace" => Function::RegexReplace(number),
            "Split" => Function::RegexSplit(number),
            _ => return Err(self.unsupported(node, &shown)),
        };
        let mut args = vec![self.expression(nodes[0])?];
        if values > 0 {
            args.push(self.expression(nodes[2])?);
        }
        Ok(Expr::Function { function, args: args.into(), line })
    }
}
