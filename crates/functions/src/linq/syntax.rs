//! From a text to tree-sitter's tree of it, and from there to positions and literals.

use std::ops::ControlFlow;

use tree_sitter::{Node, ParseOptions, ParseState, Parser, Tree};

use crate::error::CompileError;

/// A function's text may have this many bytes; an index definition with more is no index definition.
pub(crate) const TEXT_SIZE_MAX: usize = 1 << 20;

/// How often the parser may report progress before it is stopped: it does so every hundred steps or so, and an honest text needs few for each byte.
const PROGRESS_MAX_BASE: u64 = 100_000;

/// An expression is no statement, so it is parsed as the right side of this.
const PREFIX: &str = "_=";

/// A parsed text.
pub(crate) struct Syntax {
    text: String,
    tree: Tree,
}

impl Syntax {
    /// Parses an expression.
    pub(crate) fn of_expression(text: &str) -> Result<Syntax, CompileError> {
        let trimmed = text.trim_end().trim_end_matches(|c: char| c == ';' || c.is_whitespace());
        // The line break ends a comment in the last line.
        Syntax::parse(format!("{PREFIX}{trimmed}\n;"))
    }

    /// Parses the file of an additional source.
    pub(crate) fn of_file(text: &str) -> Result<Syntax, CompileError> {
        Syntax::parse(text.to_owned())
    }

    /// The root of the tree.
    pub(crate) fn root(&self) -> Node<'_> {
        self.tree.root_node()
    }

    fn parse(text: String) -> Result<Syntax, CompileError> {
        if text.len() > TEXT_SIZE_MAX {
            return Err(refused(1, 1, "", format!("the text has more than {TEXT_SIZE_MAX} bytes")));
        }
        let mut parser = Parser::new();
        parser
            .set_language(&tree_sitter_c_sharp::LANGUAGE.into())
            .map_err(|error| refused(1, 1, "", format!("the grammar does not fit the parser: {error}")))?;
        let bytes = text.as_bytes();
        let mut left = PROGRESS_MAX_BASE + 64 * bytes.len() as u64;
        let mut watch = |_: &ParseState| {
            left = left.saturating_sub(1);
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let options = ParseOptions::new().progress_callback(&mut watch);
        let tree = parser
            .parse_with_options(&mut |at, _| bytes.get(at..).unwrap_or_default(), None, Some(options))
            .ok_or_else(|| refused(1, 1, "", "the text is too hard to parse".to_owned()))?;
        let syntax = Syntax { text, tree };
        syntax.check()?;
        Ok(syntax)
    }

    /// The first error of grammar, if there is one.
    fn check(&self) -> Result<(), CompileError> {
        let root = self.tree.root_node();
        if !root.has_error() {
            return Ok(());
        }
        let mut cursor = root.walk();
        loop {
            let node = cursor.node();
            if node.is_missing() {
                let found = format!("`{}` is missing here", node.kind());
                return Err(self.error(node, "", found));
            }
            if node.is_error() {
                let text = self.text_of(node);
                let few: String = text.trim_start_matches(PREFIX).chars().take(40).collect();
                return Err(self.error(node, "", format!("this is not understood: `{}`", few.trim())));
            }
            // Only what has an error in it is entered, so the way down is the way to the first.
            if node.has_error() && cursor.goto_first_child() {
                continue;
            }
            loop {
                if cursor.goto_next_sibling() {
                    break;
                }
                if !cursor.goto_parent() {
                    return Err(self.error(root, "", "the text is not understood".to_owned()));
                }
            }
        }
    }

    /// The expression that [`Syntax::of_expression`] parsed.
    pub(crate) fn expression(&self) -> Result<Node<'_>, CompileError> {
        let root = self.tree.root_node();
        let mut statements = children(root).into_iter().filter(|node| node.kind() != "comment");
        let expression = statements
            .next()
            .and_then(|statement| statement.named_child(0))
            .and_then(|statement| statement.named_child(0))
            .filter(|node| node.kind() == "assignment_expression")
            .and_then(|assignment| assignment.child_by_field_name("right"));
        match (expression, statements.next()) {
            (Some(expression), None) => Ok(expression),
            (_, Some(more)) => {
                Err(self.error(more, "statement", "one expression is expected, not several".to_owned()))
            }
            (None, None) => Err(self.error(root, "", "an expression is expected".to_owned())),
        }
    }

    /// The text of a node.
    pub(crate) fn text_of(&self, node: Node<'_>) -> &str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    /// The line of a node in the given text, from 1.
    pub(crate) fn line_of(&self, node: Node<'_>) -> u32 {
        node.start_position().row as u32 + 1
    }

    /// An error at a node.
    pub(crate) fn error(&self, node: Node<'_>, construct: &str, message: String) -> CompileError {
        let position = node.start_position();
        let start = node.start_byte();
        let line_start = start.saturating_sub(position.column);
        let mut column =
            self.text.get(line_start..start).map_or(position.column, |text| text.chars().count()) + 1;
        if position.row == 0 && self.text.starts_with(PREFIX) {
            column = column.saturating_sub(PREFIX.len()).max(1);
        }
        refused(position.row as u32 + 1, column as u32, construct, message)
    }
}

fn refused(line: u32, column: u32, construct: &str, message: String) -> CompileError {
    CompileError { message, line, column, construct: construct.to_owned() }
}

/// All children of a node, separators included, comments not.
pub(crate) fn children<'t>(node: Node<'t>) -> Vec<Node<'t>> {
    let mut cursor = node.walk();
    node.children(&mut cursor).filter(|child| child.kind() != "comment").collect()
}

/// The children of a node that are no separators or keywords.
pub(crate) fn named<'t>(node: Node<'t>) -> Vec<Node<'t>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).filter(|child| child.kind() != "comment").collect()
}

/// What an escape of a C# string or character stands for.
pub(crate) fn unescape(escape: &str) -> Option<char> {
    let rest = escape.strip_prefix('\\')?;
    let first = rest.chars().next()?;
    Some(match first {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        '0' => '\0',
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'v' => '\u{b}',
        'e' => '\u{1b}',
        '\\' | '"' | '\'' => first,
        'u' | 'U' | 'x' => char::from_u32(u32::from_str_radix(&rest[1..], 16).ok()?)?,
        _ => return None,
    })
}
