//! Calls: methods of values, functions of RavenDB, and the static classes (the latter in `statics`).

use tree_sitter::Node;

use super::lower::{Lower, Lowering};
use super::syntax::named;
use crate::program::{Argument, Expr, Function, Lambda, Method, Type};
use crate::source::Collections;

impl Lowering<'_> {
    /// The expressions of an argument list.
    pub(super) fn arguments<'t>(&self, list: Node<'t>) -> Lower<Vec<Node<'t>>> {
        named(list)
            .into_iter()
            .map(|argument| {
                if argument.kind() != "argument" {
                    return Ok(argument);
                }
                match named(argument)[..] {
                    [value] => Ok(value),
                    _ => Err(self.refuse(
                        argument,
                        "named argument",
                        "named, `ref` and `out` arguments are not supported".to_owned(),
                    )),
                }
            })
            .collect()
    }

    pub(super) fn invocation(&mut self, node: Node<'_>) -> Lower<Expr> {
        let function = self.field(node, "function")?;
        let arguments = self.field(node, "arguments")?;
        match function.kind() {
            "identifier" | "generic_name" => {
                let (name, of) = self.plain_name(function);
                self.free_function(node, &name, of.as_deref(), arguments)
            }
            "member_access_expression" => {
                let name_node = self.field(function, "name")?;
                let target = function.child_by_field_name("expression").or_else(|| function.child(0));
                let Some(target) = target else { return Err(self.unsupported(node, "call")) };
                let target_text = self.text(target).trim();
                let (name, of) = self.plain_name(name_node);
                if self.lookup(target_text).is_none() {
                    if target_text == "this" {
                        return self.free_function(node, &name, of.as_deref(), arguments);
                    }
                    if target_text == "NoTracking" || target_text == "this.NoTracking" {
                        let name = format!("NoTracking.{name}");
                        return self.free_function(node, &name, of.as_deref(), arguments);
                    }
                    if let Some(class) = self.static_class(target) {
                        return self.static_call(node, &class, &name, name_node, arguments);
                    }
                    if let Some(class) = self.source_class(target) {
                        let values = self.arguments(arguments)?;
                        return self
                            .source_call(node, Some(&class), &name, None, &values)
                            .unwrap_or_else(|| Err(self.unsupported(node, &format!("{class}.{name}"))));
                    }
                }
                let target = self.expression(target)?;
                self.method(node, target, name_node, arguments)
            }
            // `a?.B()`, `a?.B.C()`
            "conditional_access_expression" => {
                let condition = self.field(function, "condition")?;
                let target = self.expression(condition)?;
                let Some(rest) = named(function).into_iter().nth(1) else {
                    return Err(self.unsupported(node, "?."));
                };
                let name = self.field(rest, "name")?;
                let target = match rest.kind() {
                    "member_binding_expression" => target,
                    "member_access_expression" => {
                        let inner = self.field(rest, "expression")?;
                        self.binding(target, inner)?
                    }
                    _ => return Err(self.unsupported(node, "?.")),
                };
                self.method(node, target, name, arguments)
            }
            _ => Err(self.unsupported(node, "call")),
        }
    }

    /// A name without its type arguments, and the first of those.
    pub(super) fn plain_name(&self, node: Node<'_>) -> (String, Option<String>) {
        let text: String = self.text(node).chars().filter(|c| !c.is_whitespace()).collect();
        match text.split_once('<') {
            Some((name, of)) => (name.to_owned(), Some(of.trim_end_matches('>').to_owned())),
            None => (text, None),
        }
    }

    /// A call of a method on a value.
    pub(super) fn method(
        &mut self,
        node: Node<'_>,
        target: Expr,
        name_node: Node<'_>,
        list: Node<'_>,
    ) -> Lower<Expr> {
        let arguments = self.arguments(list)?;
        self.method_with(node, target, name_node, &arguments)
    }

    pub(super) fn method_with(
        &mut self,
        node: Node<'_>,
        target: Expr,
        name_node: Node<'_>,
        arguments: &[Node<'_>],
    ) -> Lower<Expr> {
        let (name, of) = self.plain_name(name_node);
        let line = self.line(name_node);
        match name.as_str() {
            "WhereEntityIs" | "WhereEntityIsOneOf" if matches!(target, Expr::Source) => {
                return self.where_entity_is(node, arguments);
            }
            "IfEntityIs" => {
                let mut args = vec![target];
                args.extend(self.all(arguments)?);
                return Ok(Expr::Function { function: Function::InCollections, args: args.into(), line });
            }
            "OrderBy" | "OrderByDescending" | "ThenBy" | "ThenByDescending" => {
                let [key] = arguments[..] else {
                    return Err(self.wrong_count(node, &name, "1", arguments.len()));
                };
                let key = (self.lambda_argument(key, &name, 1)?, name.ends_with("Descending"));
                return match (name.starts_with("Then"), target) {
                    (false, source) => Ok(Expr::Sort { source: Box::new(source), keys: [key].into(), line }),
                    (true, Expr::Sort { source, keys, line }) => {
                        let mut keys = keys.into_vec();
                        keys.push(key);
                        Ok(Expr::Sort { source, keys: keys.into(), line })
                    }
                    (true, _) => {
                        Err(self.refuse(node, &name, format!("`{name}` stands only after `OrderBy`")))
                    }
                };
            }
            "OfType" => {
                let Some(of) = named(name_node).into_iter().find_map(|list| named(list).first().copied())
                else {
                    return Err(self.unsupported(node, "OfType without a type"));
                };
                let (of, _) = self.type_of(of)?;
                if of == Type::Object {
                    return Ok(target);
                }
                let scope = self.enter();
                let slot = self.declare(node, "")?;
                self.leave(scope);
                let test =
                    Lambda { parameters: [slot].into(), body: Expr::Is(of, Box::new(Expr::Local(slot))) };
                return Ok(Expr::Call {
                    method: Method::Where,
                    args: [target, Expr::Lambda(Box::new(test))].into(),
                    line,
                });
            }
            "Aggregate" if arguments.len() == 1 => {
                let step = self.lambda_argument(arguments[0], &name, 2)?;
                return Ok(Expr::Call {
                    method: Method::Aggregate,
                    args: [target, Expr::Lambda(Box::new(step))].into(),
                    line,
                });
            }
            _ => {}
        }
        let Some(method) = Method::named(&name) else {
            return match self.source_call(node, None, &name, Some(target), arguments) {
                Some(called) => called,
                None => Err(self.unsupported(name_node, &name)),
            };
        };
        if of.is_some() && !matches!(method, Method::Value | Method::Cast) {
            return Err(self.unsupported(name_node, &format!("{name}<>")));
        }
        let (required, kinds) = method.arguments();
        if arguments.len() < required || arguments.len() > kinds.len() {
            let expected = if required == kinds.len() {
                required.to_string()
            } else {
                format!("{required} to {}", kinds.len())
            };
            return Err(self.wrong_count(node, &name, &expected, arguments.len()));
        }
        let is_root_where = method == Method::Where && target.is_rooted();
        let mut args = vec![target];
        for (place, argument) in arguments.iter().enumerate() {
            args.push(match kinds[place] {
                Argument::Value => self.expression(*argument)?,
                Argument::Lambda => Expr::Lambda(Box::new(self.lambda_argument(*argument, &name, 1)?)),
                Argument::Lambda2 => Expr::Lambda(Box::new(self.lambda_argument(*argument, &name, 2)?)),
            });
        }
        if is_root_where && let Some(Expr::Lambda(lambda)) = args.get_mut(1) {
            lambda.body = std::mem::take(&mut lambda.body).into_root_condition();
        }
        Ok(Expr::Call { method, args: args.into(), line })
    }

    /// A lambda of `parameters` parameters, or of one more where the method gives an index too.
    fn lambda_argument(&mut self, node: Node<'_>, method: &str, parameters: usize) -> Lower<Lambda> {
        let Some(lambda) = self.as_lambda(node) else {
            return Err(self.refuse(node, method, format!("`{method}` needs a lambda here")));
        };
        let lambda = self.lambda(lambda)?;
        let indexed =
            matches!(method, "Select" | "SelectMany" | "Where" | "TakeWhile" | "SkipWhile" | "GroupBy");
        let found = lambda.parameters.len();
        if found == parameters || (found == 2 && indexed) {
            Ok(lambda)
        } else {
            Err(self.refuse(
                node,
                method,
                format!("`{method}` needs a lambda of {parameters} parameters; this has {found}"),
            ))
        }
    }

    pub(super) fn wrong_count(
        &self,
        node: Node<'_>,
        name: &str,
        expected: &str,
        found: usize,
    ) -> crate::error::CompileError {
        self.refuse(node, name, format!("`{name}` takes {expected} arguments; {found} are given"))
    }

    /// `docs.WhereEntityIs("A", "B")`: the collections that the map runs over.
    fn where_entity_is(&mut self, node: Node<'_>, arguments: &[Node<'_>]) -> Lower<Expr> {
        let mut names = Vec::new();
        for argument in arguments {
            let values = match argument.kind() {
                "implicit_array_creation_expression" | "array_creation_expression" => {
                    match self.array_creation(*argument)? {
                        Expr::Array(values) => values.into_vec(),
                        _ => Vec::new(),
                    }
                }
                _ => vec![self.expression(*argument)?],
            };
            for value in values {
                let Expr::Text(name) = value else {
                    return Err(self.refuse(
                        *argument,
                        "WhereEntityIs",
                        "the names of collections are constants".to_owned(),
                    ));
                };
                names.push(name);
            }
        }
        if names.is_empty() {
            return Err(self.wrong_count(node, "WhereEntityIs", "1 or more", 0));
        }
        if let Some(source) = &mut self.source {
            source.collections = Collections::Named(names);
        }
        Ok(Expr::Source)
    }

    /// A function that is called without a value before it.
    fn free_function(&mut self, node: Node<'_>, name: &str, of: Option<&str>, list: Node<'_>) -> Lower<Expr> {
        let nodes = self.arguments(list)?;
        let line = self.line(node);
        let (function, least, most) = match name {
            "Id" | "IdFor" => (Function::Id, 1, 1),
            "MetadataFor" => (Function::Metadata, 1, 1),
            "AsJson" | "AsDocument" => (Function::AsJson, 1, 1),
            "LoadDocument" => (Function::LoadDocument, 1, 2),
            "NoTracking.LoadDocument" => (Function::LoadUntracked, 1, 2),
            "LoadCompareExchangeValue" => (Function::LoadCompareExchange, 1, 1),
            "NoTracking.LoadCompareExchangeValue" => (Function::LoadCompareExchange, 1, 1),
            "CreateField" => (Function::CreateField, 2, 4),
            "CreateSpatialField" => (Function::CreateSpatialField, 1, 2),
            "AttachmentsFor" => (Function::AttachmentsFor, 1, 1),
            "LoadAttachment" => (Function::LoadAttachment, 2, 2),
            "LoadAttachments" => (Function::LoadAttachments, 1, 1),
            "CounterNamesFor" => (Function::CounterNamesFor, 1, 1),
            "TimeSeriesNamesFor" => (Function::TimeSeriesNamesFor, 1, 1),
            "Recurse" => {
                let [value, step] = nodes[..] else {
                    return Err(self.wrong_count(node, name, "2", nodes.len()));
                };
                let args =
                    [self.expression(value)?, Expr::Lambda(Box::new(self.lambda_argument(step, name, 1)?))];
                return Ok(Expr::Function { function: Function::Recurse, args: args.into(), line });
            }
            "nameof" => {
                let [of] = nodes[..] else { return Err(self.wrong_count(node, name, "1", nodes.len())) };
                return Ok(Expr::Text(self.text(of).rsplit('.').next().unwrap_or_default().trim().into()));
            }
            // Methods of one class call each other by name alone.
            _ if !self.calling.is_empty() => {
                let called = self.source_call(node, None, name, None, &nodes);
                return called.unwrap_or_else(|| Err(self.unsupported(node, name)));
            }
            _ => return Err(self.unsupported(node, name)),
        };
        if nodes.len() < least || nodes.len() > most {
            let expected = if least == most { least.to_string() } else { format!("{least} to {most}") };
            return Err(self.wrong_count(node, name, &expected, nodes.len()));
        }
        let args = self.all(&nodes)?;
        match function {
            Function::LoadDocument | Function::LoadUntracked => match (args.get(1), of) {
                (Some(Expr::Text(collection)), _) => {
                    if function == Function::LoadDocument
                        && !self.loads.iter().any(|known| known.eq_ignore_ascii_case(collection))
                    {
                        self.loads.push(collection.clone());
                    }
                }
                (Some(_), _) => {
                    let message = "the collection of `LoadDocument` is a constant".to_owned();
                    return Err(self.refuse(nodes[1], name, message));
                }
                (None, _) => {
                    let message = "`LoadDocument` needs the collection as its second argument".to_owned();
                    return Err(self.refuse(node, name, message));
                }
            },
            Function::LoadCompareExchange => self.uses_compare_exchange = true,
            Function::CreateField => self.has_dynamic_fields = true,
            _ => {}
        }
        Ok(Expr::Function { function, args, line })
    }
}
