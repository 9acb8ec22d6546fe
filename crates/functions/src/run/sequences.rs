//! Sequences: what can be gone over, and the methods of LINQ.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use jackdaw_document as document;

use super::list::List;
use super::numbers::{Num, Sum};
use super::{Run, Step, compare, fault, kind_of};
use crate::program::{Expr, Lambda, Method, Operator};
use crate::value::{Group, Value};

/// The elements of a value, one after the other.
pub(super) enum Elements<'r> {
    Slice(std::slice::Iter<'r, Value<'r>>),
    Array(document::Array<'r>, usize),
}

impl Elements<'_> {
    /// How many there are still.
    fn room(&self) -> usize {
        match self {
            Elements::Slice(slice) => slice.len(),
            Elements::Array(array, at) => array.len() - at,
        }
    }
}

/// Among this many keys a new one is compared with each; more get a hash table.
const KEYS_COMPARED_MAX: usize = 16;

/// Distinct values with their places, for `Distinct`, `GroupBy`, `Join` and the set operations.
pub(super) struct Keys<'r> {
    keys: Vec<Value<'r>>,
    table: HashMap<u64, Vec<u32>>,
    hasher: RandomState,
}

impl<'r> Keys<'r> {
    pub(super) fn new() -> Keys<'r> {
        Keys { keys: Vec::new(), table: HashMap::new(), hasher: RandomState::new() }
    }

    /// The hash of a value; two that are the same have the same.
    fn hash(&self, value: &Value<'r>) -> u64 {
        let mut state = self.hasher.build_hasher();
        compare::hash(value, &mut state);
        std::hash::Hasher::finish(&state)
    }

    pub(super) fn find(&self, key: &Value<'r>) -> Option<usize> {
        if self.keys.len() <= KEYS_COMPARED_MAX {
            return self.keys.iter().position(|known| compare::same(known, key));
        }
        let places = self.table.get(&self.hash(key))?;
        places.iter().map(|place| *place as usize).find(|place| compare::same(&self.keys[*place], key))
    }

    /// The place of a key, and whether it is new.
    pub(super) fn place(&mut self, key: Value<'r>) -> (usize, bool) {
        if let Some(place) = self.find(&key) {
            return (place, false);
        }
        let place = self.keys.len();
        self.keys.push(key);
        if place == KEYS_COMPARED_MAX {
            for at in 0..=place {
                let hash = self.hash(&self.keys[at]);
                self.table.entry(hash).or_default().push(at as u32);
            }
        } else if place > KEYS_COMPARED_MAX {
            let hash = self.hash(&key);
            self.table.entry(hash).or_default().push(place as u32);
        }
        (place, true)
    }
}

impl<'r, 'd: 'r> Run<'r, 'd, '_> {
    /// The elements of an array, a group, the pairs of an object, the characters of a text; null has none.
    pub(super) fn iterate(&mut self, value: Value<'r>, line: u32) -> Step<std::vec::IntoIter<Value<'r>>> {
        let mut elements = self.elements(value, line)?;
        let mut out = Vec::with_capacity(elements.room());
        while let Some(value) = self.next(&mut elements) {
            out.push(value);
        }
        Ok(out.into_iter())
    }

    #[inline]
    pub(super) fn elements(&mut self, value: Value<'r>, line: u32) -> Step<Elements<'r>> {
        Ok(match value {
            Value::Json(document::Value::Array(array)) => Elements::Array(*array, 0),
            Value::Array(values) => Elements::Slice(values.iter()),
            Value::Group(group) => Elements::Slice(group.elements.iter()),
            Value::Missing | Value::Null => Elements::Slice([].iter()),
            value => return self.elements_of_others(value, line),
        })
    }

    #[inline(never)]
    fn elements_of_others(&mut self, value: Value<'r>, line: u32) -> Step<Elements<'r>> {
        let mut list = List::new(self.arena);
        match value {
            Value::Text(text) => return Ok(Elements::Slice(self.chars(text).iter())),
            Value::Object(fields) => {
                for (name, value) in fields {
                    list.push(self.pair(name, *value));
                }
            }
            Value::Json(json) if json.as_object().is_some() => {
                for (name, value) in json.as_object().iter().flat_map(document::Object::iter) {
                    let pair = self.pair(self.text_in(&name), self.value_of(value));
                    list.push(pair);
                }
            }
            Value::Json(json) if json.as_array().is_some() => {
                for value in json.as_array().iter().flat_map(document::Array::iter) {
                    list.push(self.value_of(value));
                }
            }
            Value::Document(input) => {
                for (name, value) in input.document.object().iter().flat_map(document::Object::iter) {
                    let pair = self.pair(self.text_in(&name), self.value_of(value));
                    list.push(pair);
                }
            }
            value => return Err(fault(format!("{} is no sequence", kind_of(&value)), line)),
        }
        Ok(Elements::Slice(list.done().iter()))
    }

    fn pair(&self, name: &'r str, value: Value<'r>) -> Value<'r> {
        Value::Object(self.arena.alloc([("Key", Value::Text(name)), ("Value", value)]))
    }

    #[inline]
    pub(super) fn next(&self, elements: &mut Elements<'r>) -> Option<Value<'r>> {
        match elements {
            Elements::Slice(slice) => slice.next().copied(),
            Elements::Array(array, at) => {
                let value = array.get(*at)?;
                *at += 1;
                Some(self.value_of(value))
            }
        }
    }

    /// Whether a value is something to go over, so that methods of sequences apply.
    pub(super) fn is_sequence(value: &Value<'_>) -> bool {
        match value {
            Value::Array(_) | Value::Group(_) | Value::Object(_) | Value::Document(_) => true,
            Value::Json(value) => value.as_array().is_some() || value.as_object().is_some(),
            _ => false,
        }
    }

    /// Calls a method of LINQ. `args` are those after the sequence.
    pub(super) fn sequence_method(
        &mut self,
        method: Method,
        source: Value<'r>,
        args: &'r [Expr],
        line: u32,
    ) -> Step<Value<'r>> {
        let lambda = args.first().and_then(as_lambda);
        match method {
            Method::Select => self.select(source, lambda, line),
            Method::Where => self.filter(source, lambda, line),
            Method::SelectMany => self.select_many(source, lambda, args.get(1).and_then(as_lambda), line),
            Method::Sum => self.sum(source, lambda, line),
            Method::Count | Method::LongCount => self.count(source, lambda, line),
            Method::Average => self.average(source, lambda, line),
            Method::Min => self.extreme(source, lambda, Ordering::Less, line),
            Method::Max => self.extreme(source, lambda, Ordering::Greater, line),
            Method::Any => {
                let mut elements = self.elements(source, line)?;
                while let Some(value) = self.next(&mut elements) {
                    if self.holds(lambda, value)? {
                        return Ok(Value::Bool(true));
                    }
                }
                Ok(Value::Bool(false))
            }
            Method::All => {
                let mut elements = self.elements(source, line)?;
                while let Some(value) = self.next(&mut elements) {
                    if !self.holds(lambda, value)? {
                        return Ok(Value::Bool(false));
                    }
                }
                Ok(Value::Bool(true))
            }
            Method::First
            | Method::FirstOrDefault
            | Method::Last
            | Method::LastOrDefault
            | Method::Single
            | Method::SingleOrDefault => self.one(method, source, lambda, line),
            Method::Distinct | Method::Union | Method::Intersect | Method::Except => {
                self.set_operation(method, source, args, line)
            }
            Method::Concat => {
                let other = self.eval(&args[0])?;
                self.concat(source, other, line)
            }
            Method::Append => {
                let other = self.eval(&args[0])?;
                self.concat(source, Value::Array(self.arena.alloc([other])), line)
            }
            Method::Prepend => {
                let other = self.eval(&args[0])?;
                self.concat(Value::Array(self.arena.alloc([other])), source, line)
            }
            Method::Take | Method::Skip => {
                let count = usize::try_from(self.whole(&args[0], line)?).unwrap_or(0);
                let values = self.values_of(source, line)?;
                let at = count.min(values.len());
                Ok(Value::Array(if method == Method::Take { &values[..at] } else { &values[at..] }))
            }
            Method::TakeWhile | Method::SkipWhile => {
                let values = self.values_of(source, line)?;
                let mut at = 0;
                while at < values.len() && self.holds(lambda, values[at])? {
                    at += 1;
                }
                Ok(Value::Array(if method == Method::TakeWhile { &values[..at] } else { &values[at..] }))
            }
            Method::Reverse => {
                let values = self.values_of(source, line)?;
                Ok(Value::Array(self.arena.alloc_slice_fill_iter(values.iter().rev().copied())))
            }
            Method::ToArray | Method::ToList | Method::AsEnumerable | Method::Cast => {
                Ok(Value::Array(self.values_of(source, line)?))
            }
            Method::ToHashSet => self.set_operation(Method::Distinct, source, args, line),
            Method::DefaultIfEmpty => {
                let values = self.values_of(source, line)?;
                if !values.is_empty() {
                    return Ok(Value::Array(values));
                }
                let value = args.first().map_or(Ok(Value::Null), |arg| self.eval(arg))?;
                Ok(Value::Array(self.arena.alloc([value])))
            }
            Method::ElementAt | Method::ElementAtOrDefault => {
                let place = self.whole(&args[0], line)?;
                let values = self.values_of(source, line)?;
                match usize::try_from(place).ok().and_then(|place| values.get(place)) {
                    Some(value) => Ok(*value),
                    None if method == Method::ElementAtOrDefault => Ok(Value::Missing),
                    None => Err(fault(
                        "Specified argument was out of the range of valid values. (Parameter 'index')",
                        line,
                    )),
                }
            }
            Method::Contains => {
                let sought = self.eval(&args[0])?;
                let mut elements = self.elements(source, line)?;
                while let Some(value) = self.next(&mut elements) {
                    if compare::same(&value, &sought) {
                        return Ok(Value::Bool(true));
                    }
                }
                Ok(Value::Bool(false))
            }
            Method::SequenceEqual => {
                let other = self.eval(&args[0])?;
                let (a, b) = (self.values_of(source, line)?, self.values_of(other, line)?);
                Ok(Value::Bool(a.len() == b.len() && a.iter().zip(b).all(|(a, b)| compare::same(a, b))))
            }
            Method::GroupBy => self.group_by(source, args, line),
            Method::ToDictionary => self.dictionary_of(source, lambda, args.get(1).and_then(as_lambda), line),
            Method::Join | Method::GroupJoin => self.join_method(method, source, args, line),
            Method::Zip => {
                let other = self.eval(&args[0])?;
                let (a, b) = (self.values_of(source, line)?, self.values_of(other, line)?);
                let mut list = List::with_room(self.arena, a.len().min(b.len()));
                for (a, b) in a.iter().zip(b) {
                    let value = match args.get(1).and_then(as_lambda) {
                        Some(lambda) => self.apply2(lambda, *a, *b)?,
                        None => Value::Object(self.arena.alloc([("First", *a), ("Second", *b)])),
                    };
                    list.push(value);
                }
                Ok(Value::Array(list.done()))
            }
            Method::Aggregate => self.aggregate(source, args, line),
            _ => Err(fault(format!("an array has no method '{}'", method.name()), line)),
        }
    }

    fn holds(&mut self, lambda: Option<&'r Lambda>, value: Value<'r>) -> Step<bool> {
        match lambda {
            None => Ok(true),
            Some(lambda) => self.holds2(lambda, value, Value::Missing),
        }
    }

    /// Whether a lambda of one or two parameters holds.
    fn holds2(&mut self, lambda: &'r Lambda, value: Value<'r>, place: Value<'r>) -> Step<bool> {
        self.step()?;
        if let Some(slot) = lambda.parameters.first() {
            self.set(*slot, value);
        }
        if let Some(slot) = lambda.parameters.get(1) {
            self.set(*slot, place);
        }
        self.condition(&lambda.body)
    }

    /// What a lambda makes of a value; without one, the value.
    #[inline]
    fn mapped(&mut self, lambda: Option<&'r Lambda>, value: Value<'r>) -> Step<Value<'r>> {
        match lambda {
            None => Ok(value),
            Some(lambda) => self.apply(lambda, value),
        }
    }

    /// All elements as a slice, without a copy where they are one.
    pub(super) fn values_of(&mut self, source: Value<'r>, line: u32) -> Step<&'r [Value<'r>]> {
        match source {
            Value::Array(values) => Ok(values),
            Value::Group(group) => Ok(group.elements),
            source => {
                let mut elements = self.elements(source, line)?;
                let room = elements.room();
                self.check_memory(room * size_of::<Value<'_>>())?;
                let mut list = List::with_room(self.arena, room);
                while let Some(value) = self.next(&mut elements) {
                    list.push(value);
                }
                Ok(list.done())
            }
        }
    }

    fn select(&mut self, source: Value<'r>, lambda: Option<&'r Lambda>, line: u32) -> Step<Value<'r>> {
        let Some(lambda) = lambda else { return Ok(source) };
        let mut elements = self.elements(source, line)?;
        let mut list = List::with_room(self.arena, elements.room());
        let mut place = 0;
        while let Some(value) = self.next(&mut elements) {
            let value = self.apply2(lambda, value, Value::Long(place))?;
            list.push(value);
            place += 1;
        }
        Ok(Value::Array(list.done()))
    }

    fn filter(&mut self, source: Value<'r>, lambda: Option<&'r Lambda>, line: u32) -> Step<Value<'r>> {
        let Some(lambda) = lambda else { return Ok(source) };
        let mut elements = self.elements(source, line)?;
        let mut list = List::new(self.arena);
        let mut place = 0;
        while let Some(value) = self.next(&mut elements) {
            if self.holds2(lambda, value, Value::Long(place))? {
                list.push(value);
            }
            place += 1;
        }
        Ok(Value::Array(list.done()))
    }

    fn select_many(
        &mut self,
        source: Value<'r>,
        lambda: Option<&'r Lambda>,
        result: Option<&'r Lambda>,
        line: u32,
    ) -> Step<Value<'r>> {
        let Some(lambda) = lambda else { return Ok(source) };
        let mut elements = self.elements(source, line)?;
        let mut list = List::new(self.arena);
        let mut place = 0;
        while let Some(value) = self.next(&mut elements) {
            let inner = self.apply2(lambda, value, Value::Long(place))?;
            if matches!(inner, Value::Text(_)) {
                return Err(fault("a string is no sequence", line));
            }
            place += 1;
            let mut inner = self.elements(inner, line)?;
            while let Some(element) = self.next(&mut inner) {
                self.step()?;
                let made = match result {
                    Some(result) => self.apply2(result, value, element)?,
                    None => element,
                };
                list.push(made);
            }
        }
        Ok(Value::Array(list.done()))
    }

    /// A sum counts null as nothing; the sum of nothing is 0. Of values that are no integers by their type it is a decimal, as in
    /// RavenDB: `g.Sum(x => x.Total) / g.Sum(x => x.Count)` has a fraction.
    fn sum(&mut self, source: Value<'r>, lambda: Option<&'r Lambda>, line: u32) -> Step<Value<'r>> {
        let mut elements = self.elements(source, line)?;
        let mut sum = Sum::new();
        let mut span: Option<i64> = None;
        while let Some(value) = self.next(&mut elements) {
            let value = self.mapped(lambda, value)?;
            match Num::of(&value) {
                Some(number) => sum.add(number),
                None => match value {
                    Value::Missing | Value::Null => {}
                    Value::TimeSpan(ticks) => span = Some(span.unwrap_or(0).wrapping_add(ticks)),
                    value => return Err(fault(format!("Sum needs numbers, not {}", kind_of(&value)), line)),
                },
            }
        }
        let sum = match sum.number() {
            Num::Long(sum) if lambda.is_some_and(|lambda| !is_integer(&lambda.body)) => {
                Value::Decimal(sum.into())
            }
            sum => sum.value(),
        };
        Ok(span.map_or(sum, Value::TimeSpan))
    }

    fn count(&mut self, source: Value<'r>, lambda: Option<&'r Lambda>, line: u32) -> Step<Value<'r>> {
        let mut elements = self.elements(source, line)?;
        let Some(lambda) = lambda else { return Ok(Value::Long(elements.room() as i64)) };
        let mut count = 0;
        while let Some(value) = self.next(&mut elements) {
            count += i64::from(self.holds(Some(lambda), value)?);
        }
        Ok(Value::Long(count))
    }

    /// Null counts as zero, as RavenDB counts it.
    fn average(&mut self, source: Value<'r>, lambda: Option<&'r Lambda>, line: u32) -> Step<Value<'r>> {
        let mut elements = self.elements(source, line)?;
        let (mut sum, mut count) = (Sum::new(), 0i64);
        while let Some(value) = self.next(&mut elements) {
            let value = self.mapped(lambda, value)?;
            match Num::of(&value) {
                Some(number) => sum.add(number),
                None if value.is_null() => {}
                None => return Err(fault(format!("Average needs numbers, not {}", kind_of(&value)), line)),
            }
            count += 1;
        }
        if count == 0 {
            return Ok(Value::Missing);
        }
        Ok(match sum.number() {
            Num::Long(sum) => Value::Double(sum as f64 / count as f64),
            sum => sum.apply(Operator::Divide, Num::Long(count)).map_or(Value::Missing, Num::value),
        })
    }

    /// The least or the greatest; null is less than all.
    fn extreme(
        &mut self,
        source: Value<'r>,
        lambda: Option<&'r Lambda>,
        wanted: Ordering,
        line: u32,
    ) -> Step<Value<'r>> {
        let mut elements = self.elements(source, line)?;
        let mut best: Option<Value<'r>> = None;
        while let Some(value) = self.next(&mut elements) {
            let value = self.mapped(lambda, value)?;
            if best.is_none_or(|best| compare::sort_order(&value, &best) == wanted) {
                best = Some(value);
            }
        }
        Ok(best.unwrap_or(Value::Missing))
    }

    fn one(
        &mut self,
        method: Method,
        source: Value<'r>,
        lambda: Option<&'r Lambda>,
        line: u32,
    ) -> Step<Value<'r>> {
        let mut elements = self.elements(source, line)?;
        let mut found = None;
        while let Some(value) = self.next(&mut elements) {
            if !self.holds(lambda, value)? {
                continue;
            }
            if matches!(method, Method::First | Method::FirstOrDefault) {
                return Ok(value);
            }
            if found.is_some() && matches!(method, Method::Single | Method::SingleOrDefault) {
                return Err(fault("Sequence contains more than one element", line));
            }
            found = Some(value);
        }
        match found {
            Some(value) => Ok(value),
            None if matches!(method, Method::First | Method::Last | Method::Single) => {
                let message = if lambda.is_some() {
                    "Sequence contains no matching element"
                } else {
                    "Sequence contains no elements"
                };
                Err(fault(message, line))
            }
            None => Ok(Value::Missing),
        }
    }

    fn set_operation(
        &mut self,
        method: Method,
        source: Value<'r>,
        args: &'r [Expr],
        line: u32,
    ) -> Step<Value<'r>> {
        let mut others = Keys::new();
        let mut other = &[][..];
        if method != Method::Distinct {
            let value = self.eval(&args[0])?;
            other = self.values_of(value, line)?;
        }
        if matches!(method, Method::Intersect | Method::Except) {
            for value in other {
                self.step()?;
                others.place(*value);
            }
        }
        let values = self.values_of(source, line)?;
        let mut keys = Keys::new();
        let mut list = List::new(self.arena);
        for value in values {
            self.step()?;
            let wanted = match method {
                Method::Intersect => others.find(value).is_some(),
                Method::Except => others.find(value).is_none(),
                _ => true,
            };
            if wanted && keys.place(*value).1 {
                list.push(*value);
            }
        }
        if method == Method::Union {
            for value in other {
                self.step()?;
                if keys.place(*value).1 {
                    list.push(*value);
                }
            }
        }
        Ok(Value::Array(list.done()))
    }

    fn concat(&mut self, first: Value<'r>, second: Value<'r>, line: u32) -> Step<Value<'r>> {
        let (first, second) = (self.values_of(first, line)?, self.values_of(second, line)?);
        let room = first.len() + second.len();
        self.check_memory(room * size_of::<Value<'_>>())?;
        let mut list = List::with_room(self.arena, room);
        for value in first.iter().chain(second) {
            list.push(*value);
        }
        Ok(Value::Array(list.done()))
    }

    /// Gathers elements under their keys, in the order in which the keys came.
    pub(super) fn groups(
        &mut self,
        pairs: impl IntoIterator<Item = (Value<'r>, Value<'r>)>,
    ) -> Step<&'r [Value<'r>]> {
        let mut keys = Keys::new();
        let mut lists: Vec<List<'r>> = Vec::new();
        for (key, element) in pairs {
            let (place, is_new) = keys.place(key);
            if is_new {
                lists.push(List::new(self.arena));
            }
            lists[place].push(element);
        }
        let mut groups = List::with_room(self.arena, lists.len());
        for (key, list) in keys.keys.iter().zip(lists) {
            groups.push(Value::Group(self.arena.alloc(Group { key: *key, elements: list.done() })));
        }
        Ok(groups.done())
    }

    fn group_by(&mut self, source: Value<'r>, args: &'r [Expr], line: u32) -> Step<Value<'r>> {
        let lambdas: Vec<&'r Lambda> = args.iter().filter_map(as_lambda).collect();
        let (key, element, result) = match lambdas[..] {
            [key] => (key, None, None),
            [key, result] if result.parameters.len() == 2 => (key, None, Some(result)),
            [key, element] => (key, Some(element), None),
            [key, element, result] => (key, Some(element), Some(result)),
            _ => return Err(fault("GroupBy needs a key", line)),
        };
        let mut elements = self.elements(source, line)?;
        let mut pairs = Vec::with_capacity(elements.room());
        while let Some(value) = self.next(&mut elements) {
            pairs.push((self.apply(key, value)?, self.mapped(element, value)?));
        }
        let groups = self.groups(pairs)?;
        let Some(result) = result else { return Ok(Value::Array(groups)) };
        let mut list = List::with_room(self.arena, groups.len());
        for group in groups {
            let key = if let Value::Group(group) = group { group.key } else { Value::Missing };
            let value = self.apply2(result, key, *group)?;
            list.push(value);
        }
        Ok(Value::Array(list.done()))
    }

    fn dictionary_of(
        &mut self,
        source: Value<'r>,
        key: Option<&'r Lambda>,
        value: Option<&'r Lambda>,
        line: u32,
    ) -> Step<Value<'r>> {
        let mut elements = self.elements(source, line)?;
        let mut fields: Vec<(&'r str, Value<'r>)> = Vec::with_capacity(elements.room());
        let mut keys = Keys::new();
        while let Some(element) = self.next(&mut elements) {
            let name = self.mapped(key, element)?;
            // So RavenDB names it.
            let name = if name.is_null() { "NULL_VALUE" } else { self.text_of(name)? };
            if !keys.place(Value::Text(name)).1 {
                return Err(fault(
                    format!("An item with the same key has already been added. Key: {name}"),
                    line,
                ));
            }
            fields.push((name, self.mapped(value, element)?));
        }
        Ok(Value::Object(self.arena.alloc_slice_copy(&fields)))
    }

    fn join_method(
        &mut self,
        method: Method,
        source: Value<'r>,
        args: &'r [Expr],
        line: u32,
    ) -> Step<Value<'r>> {
        let (Some(outer), Some(inner), Some(result)) = (
            args.get(1).and_then(as_lambda),
            args.get(2).and_then(as_lambda),
            args.get(3).and_then(as_lambda),
        ) else {
            return Err(fault("Join needs its lambdas", line));
        };
        let other = self.eval(&args[0])?;
        let others = self.values_of(other, line)?;
        let mut pairs = Vec::with_capacity(others.len());
        for value in others {
            pairs.push((self.apply(inner, *value)?, *value));
        }
        let groups = self.groups(pairs)?;
        let mut keys = Keys::new();
        for group in groups {
            if let Value::Group(group) = group {
                keys.place(group.key);
            }
        }
        let mut list = List::new(self.arena);
        for value in self.values_of(source, line)? {
            let key = self.apply(outer, *value)?;
            // Null has no partner.
            let found = if key.is_null() { None } else { keys.find(&key).map(|place| groups[place]) };
            if method == Method::GroupJoin {
                let made = self.apply2(result, *value, found.unwrap_or(Value::Array(&[])))?;
                list.push(made);
            } else if let Some(Value::Group(group)) = found {
                for element in group.elements {
                    let made = self.apply2(result, *value, *element)?;
                    list.push(made);
                }
            }
        }
        Ok(Value::Array(list.done()))
    }

    fn aggregate(&mut self, source: Value<'r>, args: &'r [Expr], line: u32) -> Step<Value<'r>> {
        let mut elements = self.elements(source, line)?;
        let (mut result, step) = match args {
            [step] => match self.next(&mut elements) {
                Some(first) => (first, as_lambda(step)),
                None => return Err(fault("Sequence contains no elements", line)),
            },
            [seed, step, ..] => (self.eval(seed)?, as_lambda(step)),
            [] => return Err(fault("Aggregate needs a lambda", line)),
        };
        let Some(step) = step else { return Err(fault("Aggregate needs a lambda", line)) };
        while let Some(value) = self.next(&mut elements) {
            result = self.apply2(step, result, value)?;
        }
        match args.get(2).and_then(as_lambda) {
            Some(last) => self.apply(last, result),
            None => Ok(result),
        }
    }

    pub(super) fn sort(
        &mut self,
        source: Value<'r>,
        keys: &'r [(Lambda, bool)],
        line: u32,
    ) -> Step<Value<'r>> {
        let values = self.values_of(source, line)?;
        let mut rows = Vec::with_capacity(values.len());
        for value in values {
            let mut row = Vec::with_capacity(keys.len());
            for (key, _) in keys {
                row.push(self.apply(key, *value)?);
            }
            rows.push((row, *value));
        }
        rows.sort_by(|(a, _), (b, _)| by_keys(a, b, keys.iter().map(|(_, descending)| *descending)));
        Ok(Value::Array(self.arena.alloc_slice_fill_iter(rows.into_iter().map(|(_, value)| value))))
    }
}

/// The order of two rows of sort keys.
pub(super) fn by_keys(a: &[Value<'_>], b: &[Value<'_>], descending: impl Iterator<Item = bool>) -> Ordering {
    a.iter()
        .zip(b)
        .zip(descending)
        .map(|((a, b), descending)| {
            let order = compare::sort_order(a, b);
            if descending { order.reverse() } else { order }
        })
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

pub(super) fn as_lambda(expr: &Expr) -> Option<&Lambda> {
    match expr {
        Expr::Lambda(lambda) => Some(lambda),
        _ => None,
    }
}

/// Whether the text of the function alone says that it gives integers.
fn is_integer(body: &Expr) -> bool {
    match body {
        Expr::Long(_) | Expr::Cast { .. } => true,
        Expr::Negate(value, _) => is_integer(value),
        Expr::Arithmetic(_, sides, _) => is_integer(&sides.0) && is_integer(&sides.1),
        Expr::Conditional(parts) => is_integer(&parts.1) && is_integer(&parts.2),
        _ => false,
    }
}
