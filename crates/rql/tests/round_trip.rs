//! Random trees print as text that parses to an equal tree.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use jackdaw_rql::tree::{
    Argument, Between, Call, Code, CodeLanguage, Comparison, ComparisonOperator, Declaration, Direction,
    Expression, GroupKey, In, Junction, Literal, Load, Name, Not, Nulls, OrderKey, OrderType, Paging,
    Parameter, Path, Projection, Query, Select, SelectItem, Source, SourceKind, Step, Value,
};
use jackdaw_rql::{Span, parse, parse_expression, parse_path};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

/// Words that mean something somewhere, so that names of this kind are mistaken for what they are not, if anything is.
const KEYWORDS: &[&str] = &[
    "all",
    "and",
    "as",
    "asc",
    "between",
    "by",
    "declare",
    "desc",
    "distinct",
    "false",
    "filter",
    "filter_limit",
    "from",
    "group",
    "in",
    "Include",
    "index",
    "limit",
    "load",
    "long",
    "match",
    "not",
    "NULL",
    "nulls",
    "offset",
    "or",
    "order",
    "select",
    "timeseries",
    "True",
    "update",
    "where",
    "with",
];

fn text() -> BoxedStrategy<String> {
    prop_oneof![
        4 => "[A-Za-z_@][A-Za-z0-9_@-]{0,6}",
        2 => select(KEYWORDS).prop_map(str::to_owned),
        1 => ".{0,6}",
        1 => "['\"\\\\\n a-b]{0,4}",
    ]
    .boxed()
}

fn name() -> BoxedStrategy<Name<'static>> {
    text().prop_map(Name::new).boxed()
}

fn step() -> BoxedStrategy<Step<'static>> {
    prop_oneof![
        3 => name().prop_map(Step::Name),
        1 => Just(Step::Elements),
        1 => "[0-9]{1,3}".prop_map(|digits| Step::Index(digits.into())),
    ]
    .boxed()
}

fn path_of(
    first: impl Strategy<Value = String> + 'static,
    steps: std::ops::Range<usize>,
) -> BoxedStrategy<Path<'static>> {
    (first, vec(step(), steps)).prop_map(|(first, rest)| Path { rest, ..Path::new(first) }).boxed()
}

/// Any path, for where nothing but a path can stand.
fn path() -> BoxedStrategy<Path<'static>> {
    path_of(text(), 0..4).boxed()
}

/// A path for where a string can stand too: of one name, it needs no quotes.
fn path_as_value() -> BoxedStrategy<Path<'static>> {
    let words = select(
        &["in", "between", "by", "from", "index", "asc", "nulls", "filter", "with", "all", "first"][..],
    );
    prop_oneof![
        2 => path_of("f_[a-z]{0,3}", 0..1),
        1 => path_of(words.prop_map(str::to_owned), 0..1),
        1 => path_of(text(), 1..4),
    ]
    .boxed()
}

fn literal(value: Value<'static>) -> Expression<'static> {
    Expression::Literal(Literal { value, span: Span::default() })
}

fn string() -> BoxedStrategy<Expression<'static>> {
    text().prop_map(|text| literal(Value::String(text.into()))).boxed()
}

fn parameter() -> BoxedStrategy<Expression<'static>> {
    "[A-Za-z0-9_]{1,5}"
        .prop_map(|name| Expression::Parameter(Parameter { name: name.into(), span: Span::default() }))
        .boxed()
}

fn constant() -> BoxedStrategy<Expression<'static>> {
    prop_oneof![
        string(),
        "-?[0-9]{1,5}(\\.[0-9]{0,3})?(e-?[0-9])?".prop_map(|number| literal(Value::Number(number.into()))),
        select(&[Value::True, Value::False, Value::Null][..]).prop_map(literal),
        parameter(),
    ]
    .boxed()
}

fn call_with(
    argument: impl Strategy<Value = Expression<'static>> + 'static,
) -> BoxedStrategy<Expression<'static>> {
    let argument = (argument, option::weighted(0.1, name()))
        .prop_map(|(expression, alias)| Argument { expression, alias });
    ("q[a-zA-Z]{0,5}(\\.[a-z]{1,5})?", vec(argument, 0..4), option::weighted(0.2, name()))
        .prop_map(|(name, arguments, property)| {
            Expression::Call(Call { name: name.into(), arguments, property, span: Span::default() })
        })
        .boxed()
}

/// A call with nothing but constants and fields.
fn call() -> BoxedStrategy<Expression<'static>> {
    call_with(prop_oneof![constant(), path_as_value().prop_map(Expression::Field)]).boxed()
}

fn compared() -> BoxedStrategy<Expression<'static>> {
    prop_oneof![4 => path().prop_map(Expression::Field), 1 => call()].boxed()
}

fn value_without_field() -> BoxedStrategy<Expression<'static>> {
    prop_oneof![4 => constant(), 1 => call()].boxed()
}

fn value() -> BoxedStrategy<Expression<'static>> {
    prop_oneof![4 => constant(), 1 => call(), 1 => path_as_value().prop_map(Expression::Field)].boxed()
}

fn comparison_operator() -> BoxedStrategy<ComparisonOperator> {
    use ComparisonOperator::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
    select(&[Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual][..]).boxed()
}

fn condition() -> BoxedStrategy<Expression<'static>> {
    let span = Span::default();
    let leaf = prop_oneof![
        4 => (compared(), comparison_operator(), value()).prop_map(move |(left, operator, right)| {
            Expression::Comparison(Box::new(Comparison { left, operator, right, span }))
        }),
        1 => (compared(), value_without_field(), value_without_field()).prop_map(move |(operand, low, high)| {
            Expression::Between(Box::new(Between { operand, low, high, span }))
        }),
        1 => (compared(), any::<bool>(), vec(value_without_field(), 0..4)).prop_map(move |(operand, all, values)| {
            Expression::In(Box::new(In { operand, all, values, span }))
        }),
        1 => call(),
        1 => select(&[Value::True, Value::False][..]).prop_map(literal),
    ];
    leaf.prop_recursive(4, 24, 3, move |inner| {
        prop_oneof![
            vec(inner.clone(), 2..4).prop_map(move |operands| Expression::And(Junction { operands, span })),
            vec(inner.clone(), 2..4).prop_map(move |operands| Expression::Or(Junction { operands, span })),
            inner.clone().prop_map(move |operand| Expression::Not(Box::new(Not { operand, span }))),
            call_with(inner),
        ]
    })
    .boxed()
}

fn code(language: CodeLanguage) -> BoxedStrategy<Code<'static>> {
    let texts: &[&str] = match language {
        CodeLanguage::JavaScript => &[
            "",
            " a: x.a ",
            "{ this.a = 1 }",
            " return '}' + `${{}}}` + /}/.source; // }\n ",
            " /* } */ b: { } ",
        ],
        CodeLanguage::TimeSeries => {
            &["from HR", " from x.HR where (Tag = ')') select min() ", "from 'H R' last 5 min"]
        }
    };
    select(texts).prop_map(move |text| Code { language, text: text.into(), span: Span::default() }).boxed()
}

fn declaration() -> BoxedStrategy<Declaration<'static>> {
    let body = prop_oneof![code(CodeLanguage::JavaScript), code(CodeLanguage::TimeSeries)];
    (name(), vec(name(), 0..3), body)
        .prop_map(|(name, parameters, body)| Declaration { name, parameters, body, span: Span::default() })
        .boxed()
}

fn source() -> BoxedStrategy<Source<'static>> {
    let collection =
        (name(), any::<bool>()).prop_map(|(name, revisions)| (SourceKind::Collection(name), revisions));
    let kind = prop_oneof![
        2 => collection,
        1 => name().prop_map(|name| (SourceKind::Index(name), false)),
        1 => any::<bool>().prop_map(|revisions| (SourceKind::AllDocuments, revisions)),
    ];
    (kind, option::of(name()))
        .prop_map(|((kind, revisions), alias)| Source { kind, revisions, alias, span: Span::default() })
        .boxed()
}

fn order_key() -> BoxedStrategy<OrderKey<'static>> {
    use OrderType::{AlphaNumeric, Double, Long, String};
    let order_type = select(&[None, Some(Long), Some(Double), Some(AlphaNumeric), Some(String)][..]);
    let direction = select(&[Direction::Ascending, Direction::Descending][..]);
    let nulls = select(&[None, Some(Nulls::First), Some(Nulls::Last)][..]);
    (compared(), order_type, direction, nulls)
        .prop_map(|(expression, order_type, direction, nulls)| OrderKey {
            expression,
            order_type,
            direction,
            nulls,
            span: Span::default(),
        })
        .boxed()
}

fn load() -> BoxedStrategy<Load<'static>> {
    (path(), name(), any::<bool>())
        .prop_map(|(path, alias, many)| Load { path, alias, many, span: Span::default() })
        .boxed()
}

fn select_clause() -> BoxedStrategy<Select<'static>> {
    let selected =
        prop_oneof![4 => value(), 1 => code(CodeLanguage::TimeSeries).prop_map(Expression::TimeSeries)];
    let item =
        (selected, option::of(name())).prop_map(|(expression, alias)| SelectItem { expression, alias });
    let projection = prop_oneof![
        1 => Just(Projection::All),
        4 => vec(item, 1..4).prop_map(Projection::Items),
        1 => code(CodeLanguage::JavaScript).prop_map(Projection::Object),
    ];
    (any::<bool>(), projection)
        .prop_map(|(distinct, projection)| Select { distinct, projection, span: Span::default() })
        .boxed()
}

fn count() -> BoxedStrategy<Option<Expression<'static>>> {
    option::of(prop_oneof![
        "[0-9]{1,3}".prop_map(|number| literal(Value::Number(number.into()))),
        Just(literal(Value::Null)),
        parameter(),
    ])
    .boxed()
}

prop_compose! {
    fn query()(
        declarations in vec(declaration(), 0..3),
        from in source(),
        group_by in vec((compared(), option::of(name())), 0..3),
        condition in option::of(condition()),
        order_by in vec(order_key(), 0..3),
        load in vec(load(), 0..3),
        filter in option::weighted(0.2, condition()),
        select in option::of(select_clause()),
        include in vec(prop_oneof![path_as_value().prop_map(Expression::Field), string(), call()], 0..3),
        update in option::weighted(0.2, code(CodeLanguage::JavaScript)),
        (skip, take, filter_limit) in (count(), count(), count()),
    ) -> Query<'static> {
        Query {
            declarations,
            from,
            group_by: group_by.into_iter().map(|(expression, alias)| GroupKey { expression, alias }).collect(),
            condition,
            order_by,
            load,
            filter,
            select,
            include,
            update,
            paging: Paging { skip, take, filter_limit },
            span: Span::default(),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn queries_print_and_parse(query in query()) {
        let printed = query.to_string();
        let parsed = parse(&printed).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(&parsed, &query, "{}", &printed);
        prop_assert_eq!(parsed.to_string(), printed);
    }

    #[test]
    fn conditions_print_and_parse(condition in condition()) {
        let printed = condition.to_string();
        let parsed = parse_expression(&printed).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(&parsed, &condition, "{}", &printed);
    }

    #[test]
    fn paths_print_and_parse(path in path()) {
        let printed = path.to_string();
        let parsed = parse_path(&printed).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(&parsed, &path, "{}", &printed);
    }
}
