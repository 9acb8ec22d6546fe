//! Calls of methods, and of functions that belong to no value.

use oxc_ast::ast::{Argument, CallExpression, Expression};

use super::expressions::{reading, script};
use super::{Lower, Lowering, NotLowered, Role, without_parentheses};
use crate::program::script::{Function, Method, Reading, Script};
use crate::program::{Expr, Lambda};

impl Lowering {
    /// A call; `chained` is how it is read when it has no `?.` itself: guarded outside of chains, plain within one.
    pub(super) fn call(&mut self, call: &CallExpression<'_>, chained: Reading) -> Lower<Expr> {
        if call.optional {
            return Err(NotLowered("a call with ?.()"));
        }
        match &call.callee {
            Expression::Identifier(name) => {
                if self.scopes.find(&name.name).is_some() {
                    return Err(NotLowered("a call of a variable"));
                }
                let (function, least, most) = self.function_named(&name.name)?;
                self.call_of(function, call, least, most)
            }
            Expression::StaticMemberExpression(member) => {
                let name = member.property.name.as_str();
                if let Expression::Identifier(object) = &member.object
                    && self.scopes.find(&object.name).is_none()
                {
                    let (function, least, most) = self.static_function(&object.name, name)?;
                    return self.call_of(function, call, least, most);
                }
                let method = Method::named(name).ok_or(NotLowered("a method of another name"))?;
                let reading_here = match chained {
                    Reading::Guarded => Reading::Guarded,
                    _ => reading(member.optional),
                };
                self.method(&member.object, method, call, reading_here, false)
            }
            _ => Err(NotLowered("a call of a computed value")),
        }
    }

    /// `array.forEach(..)` as a statement: lists may grow within.
    pub(super) fn for_each(&mut self, call: &CallExpression<'_>) -> Lower<Option<Expr>> {
        let Expression::StaticMemberExpression(member) = &call.callee else { return Ok(None) };
        if member.property.name != "forEach" || call.optional {
            return Ok(None);
        }
        if let Expression::Identifier(object) = &member.object
            && self.scopes.find(&object.name).is_none()
        {
            return Ok(None);
        }
        self.method(&member.object, Method::ForEach, call, Reading::Guarded, true).map(Some)
    }

    fn method(
        &mut self,
        object: &Expression<'_>,
        method: Method,
        call: &CallExpression<'_>,
        reading: Reading,
        appends: bool,
    ) -> Lower<Expr> {
        let (least, most) = method.arguments();
        if call.arguments.len() < least || call.arguments.len() > most {
            return Err(NotLowered("another number of arguments"));
        }
        let target = self.without_appends(|lowering| lowering.target(object, reading))?;
        let mut args = Vec::with_capacity(call.arguments.len());
        for (at, argument) in call.arguments.iter().enumerate() {
            let argument = argument.as_expression().ok_or(NotLowered("spread arguments"))?;
            args.push(match (at, method.callback()) {
                (0, parameters) if parameters > 0 => {
                    Expr::Lambda(Box::new(self.callback(argument, parameters, appends)?))
                }
                _ => self.without_appends(|lowering| lowering.expression(argument))?,
            });
        }
        Ok(script(Script::Call { target, method, args: args.into(), reading }))
    }

    /// A function that is an argument; also the name of a conversion, as in `filter(Boolean)`.
    fn callback(&mut self, argument: &Expression<'_>, parameters: usize, appends: bool) -> Lower<Lambda> {
        if let Expression::Identifier(name) = without_parentheses(argument)
            && self.scopes.find(&name.name).is_none()
        {
            let function = match name.name.as_str() {
                "Boolean" => Function::ToBool,
                "String" => Function::ToText,
                "Number" => Function::ToNumber,
                _ => return Err(NotLowered("a function that is not written where it is used")),
            };
            let slot = self.slot()?;
            let body = script(Script::Function(function, Box::new([Expr::Local(slot)])));
            return Ok(Lambda { parameters: Box::new([slot]), body });
        }
        self.function(argument, parameters, appends)
    }

    fn call_of(
        &mut self,
        function: Function,
        call: &CallExpression<'_>,
        least: usize,
        most: usize,
    ) -> Lower<Expr> {
        if call.arguments.len() < least || call.arguments.len() > most {
            return Err(NotLowered("another number of arguments"));
        }
        if matches!(function, Function::Load | Function::LoadUntracked)
            && !matches!(call.arguments.get(1), None | Some(Argument::StringLiteral(_)))
        {
            return Err(NotLowered("a collection that is no literal"));
        }
        self.reads_metadata |= function == Function::Metadata;
        let mut args = Vec::with_capacity(call.arguments.len());
        for argument in &call.arguments {
            let argument = argument.as_expression().ok_or(NotLowered("spread arguments"))?;
            args.push(self.expression(argument)?);
        }
        Ok(script(Script::Function(function, args.into())))
    }

    /// A function that scripts are given, with the least and the most arguments.
    fn function_named(&self, name: &str) -> Lower<(Function, usize, usize)> {
        let is_map = self.role == Role::Map;
        Ok(match name {
            "id" => (Function::Id, 1, 1),
            "getMetadata" | "metadataFor" if is_map => (Function::Metadata, 1, 1),
            "lastModified" => (Function::LastModified, 1, 1),
            "load" if is_map => (Function::Load, 1, 2),
            "cmpxchg" if is_map => (Function::CompareExchange, 1, 1),
            "createField" => (Function::CreateField, 2, 3),
            "createSpatialField" => (Function::CreateSpatialField, 1, 2),
            "boost" => (Function::Boost, 2, 2),
            "String" => (Function::ToText, 0, 1),
            "Number" => (Function::ToNumber, 0, 1),
            "Boolean" => (Function::ToBool, 0, 1),
            "parseInt" => (Function::ParseInt, 1, 1),
            "parseFloat" => (Function::ParseFloat, 1, 1),
            "isNaN" => (Function::IsNan, 1, 1),
            "isFinite" => (Function::IsFinite, 1, 1),
            _ => return Err(NotLowered("a function of another name")),
        })
    }

    fn static_function(&self, object: &str, name: &str) -> Lower<(Function, usize, usize)> {
        const MANY: usize = 64;
        Ok(match (object, name) {
            ("noTracking", "load") if self.role == Role::Map => (Function::LoadUntracked, 1, 2),
            ("Object", "keys") => (Function::Keys, 1, 1),
            ("Object", "values") => (Function::Values, 1, 1),
            ("Object", "entries") => (Function::Entries, 1, 1),
            ("Array", "isArray") => (Function::IsArray, 1, 1),
            ("Number", "isNaN") => (Function::NumberIsNan, 1, 1),
            ("Number", "isFinite") => (Function::NumberIsFinite, 1, 1),
            ("Number", "isInteger") => (Function::NumberIsInteger, 1, 1),
            ("Number", "parseFloat") => (Function::ParseFloat, 1, 1),
            ("Number", "parseInt") => (Function::ParseInt, 1, 1),
            ("Math", "abs") => (Function::Abs, 1, 1),
            ("Math", "floor") => (Function::Floor, 1, 1),
            ("Math", "ceil") => (Function::Ceil, 1, 1),
            ("Math", "round") => (Function::Round, 1, 1),
            ("Math", "trunc") => (Function::Trunc, 1, 1),
            ("Math", "sign") => (Function::Sign, 1, 1),
            ("Math", "sqrt") => (Function::Sqrt, 1, 1),
            ("Math", "min") => (Function::Min, 0, MANY),
            ("Math", "max") => (Function::Max, 0, MANY),
            ("Math", "pow") => (Function::Pow, 2, 2),
            _ => return Err(NotLowered("a function of another object")),
        })
    }
}
