//! Which handler a request goes to: a trie over the segments of paths.
//!
//! A node's children are sorted by the length of their segment, so that a lookup compares the few of equal length. A match allocates
//! nothing: parameters are ranges of the path. Fixed segments are compared byte by byte, as the reference does; parameters (database
//! names) are compared by whoever uses them.

mod path;

use http::Method;

pub(crate) use path::NormalPath;

/// How many parameters a route can have.
const PARAMETERS_MAX: usize = 2;

/// A trie of routes, each with a target of type `T`.
pub(crate) struct Router<T> {
    nodes: Vec<Node>,
    targets: Vec<T>,
    /// Method and route of each target.
    routes: Vec<(Method, Box<str>)>,
}

/// What can follow one prefix of segments.
#[derive(Default)]
struct Node {
    /// Fixed segments and where they lead, by length.
    children: Vec<(Box<str>, usize)>,
    /// `first_of_length[n]`: the first child whose segment has `n` bytes or more.
    first_of_length: Vec<u16>,
    /// Where any other segment leads.
    parameter: Option<usize>,
    /// The targets of a path that ends here.
    targets: Vec<(Method, usize)>,
    /// The targets of a path that ends anywhere below.
    below: Vec<(Method, usize)>,
}

/// The values of a route's `{...}` segments, as ranges of the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parameters {
    ranges: [(u32, u32); PARAMETERS_MAX],
    count: usize,
}

impl Parameters {
    /// The value of the parameter at `index`, counted from the left; `path` is the path that was matched.
    pub(crate) fn get<'p>(&self, path: &'p str, index: usize) -> Option<&'p str> {
        let (start, end) = *self.ranges[..self.count].get(index)?;
        path.get(start as usize..end as usize)
    }
}

/// Why a path has no target. Both are answered alike; logs and `Allow` tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoMatch {
    /// No route has this path.
    Path,
    /// Routes have this path, but not this method.
    Method,
}

impl<T> Router<T> {
    pub(crate) fn new() -> Router<T> {
        Router { nodes: vec![Node::default()], targets: Vec::new(), routes: Vec::new() }
    }

    /// Adds a route: `/databases/{db}/docs`; `/{*}` at the end takes any number of further segments.
    ///
    /// # Panics
    ///
    /// When the route is there already or cannot be: routes are the program's own, and every start adds them all.
    pub(crate) fn add(&mut self, method: Method, route: &str, target: T) {
        let mut node = 0;
        let mut is_below = false;
        for segment in segments(route) {
            assert!(!is_below, "{route}: nothing can follow {{*}}");
            match segment {
                "{*}" => is_below = true,
                segment if segment.starts_with('{') => node = self.parameter_of(node),
                segment => node = self.child_of(node, segment),
            }
        }
        let target_index = self.targets.len();
        self.targets.push(target);
        self.routes.push((method.clone(), route.into()));
        let node = &mut self.nodes[node];
        let targets = if is_below { &mut node.below } else { &mut node.targets };
        assert!(targets.iter().all(|(other, _)| *other != method), "{method} {route} is there twice");
        targets.push((method, target_index));
    }

    fn parameter_of(&mut self, node: usize) -> usize {
        if let Some(next) = self.nodes[node].parameter {
            return next;
        }
        self.nodes.push(Node::default());
        let next = self.nodes.len() - 1;
        self.nodes[node].parameter = Some(next);
        next
    }

    fn child_of(&mut self, node: usize, segment: &str) -> usize {
        if let Some(next) = self.nodes[node].child(segment) {
            return next;
        }
        self.nodes.push(Node::default());
        let next = self.nodes.len() - 1;
        self.nodes[node].add_child(segment, next);
        next
    }

    /// Method and route of all targets, in the order in which they were added.
    pub(crate) fn routes(&self) -> &[(Method, Box<str>)] {
        &self.routes
    }

    /// The target for a method and a path, and the path's parameters.
    pub(crate) fn find(&self, method: &Method, path: &str) -> Result<(&T, Parameters), NoMatch> {
        let mut parameters = Parameters::default();
        let mut no_match = NoMatch::Path;
        // The root has no segments; any other path that ends with a slash has an empty one.
        let start = usize::from(path == "/");
        let found = self.find_from(0, method, path, start, &mut parameters, &mut no_match);
        found.map(|index| (&self.targets[index], parameters)).ok_or(no_match)
    }

    /// Follows the path from byte `at`, where a `/` must be or the path end. Goes back to a parameter where a fixed segment leads nowhere;
    /// routes are a few segments deep, so the recursion is too.
    fn find_from(
        &self,
        node: usize,
        method: &Method,
        path: &str,
        at: usize,
        parameters: &mut Parameters,
        no_match: &mut NoMatch,
    ) -> Option<usize> {
        let node = &self.nodes[node];
        let rest = &path.as_bytes()[at..];
        if rest.is_empty() {
            return by_method(&node.targets, method, no_match);
        }
        let start = at + 1;
        let length = rest[1..].iter().position(|byte| *byte == b'/').unwrap_or(rest.len() - 1);
        let end = start + length;
        let segment = &path[start..end];
        if let Some(child) = node.child(segment)
            && let Some(found) = self.find_from(child, method, path, end, parameters, no_match)
        {
            return Some(found);
        }
        if let Some(child) = node.parameter
            && !segment.is_empty()
            && parameters.count < PARAMETERS_MAX
        {
            let count = parameters.count;
            parameters.ranges[count] = (start as u32, end as u32);
            parameters.count += 1;
            if let Some(found) = self.find_from(child, method, path, end, parameters, no_match) {
                return Some(found);
            }
            parameters.count = count;
        }
        by_method(&node.below, method, no_match)
    }
}

fn by_method(targets: &[(Method, usize)], method: &Method, no_match: &mut NoMatch) -> Option<usize> {
    let found = targets.iter().find(|(other, _)| other == method).map(|(_, target)| *target);
    if found.is_none() && !targets.is_empty() {
        *no_match = NoMatch::Method;
    }
    found
}

impl Node {
    fn child(&self, segment: &str) -> Option<usize> {
        let first = usize::from(*self.first_of_length.get(segment.len())?);
        let same_length = self.children[first..].iter().take_while(|(name, _)| name.len() == segment.len());
        same_length.into_iter().find(|(name, _)| **name == *segment).map(|(_, next)| *next)
    }

    fn add_child(&mut self, segment: &str, next: usize) {
        self.children.push((segment.into(), next));
        self.children.sort_by_key(|(name, _)| name.len());
        let longest = self.children.last().map_or(0, |(name, _)| name.len());
        self.first_of_length = (0..=longest)
            .map(|length| self.children.partition_point(|(name, _)| name.len() < length) as u16)
            .collect();
    }
}

/// `/a/b` is `a`, `b`; `/` is nothing.
fn segments(route: &str) -> impl Iterator<Item = &str> {
    let path = route.strip_prefix('/').unwrap_or(route);
    path.split('/').filter(move |_| !path.is_empty())
}

#[cfg(test)]
#[allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn router(routes: &[(Method, &'static str)]) -> Router<&'static str> {
        let mut router = Router::new();
        for (method, route) in routes {
            router.add(method.clone(), route, *route);
        }
        router
    }

    #[test]
    fn paths_lead_to_their_routes() {
        let router = router(&[
            (Method::GET, "/"),
            (Method::GET, "/databases"),
            (Method::GET, "/databases/{db}/docs"),
            (Method::GET, "/databases/{db}/docs/size"),
            (Method::GET, "/databases/{db}/{name}/own"),
            (Method::PUT, "/databases/{db}/docs"),
            (Method::GET, "/studio/{*}"),
        ]);
        for (path, expected) in [
            ("/", Ok(("/", [None, None]))),
            ("/databases", Ok(("/databases", [None, None]))),
            ("/databases/x/docs", Ok(("/databases/{db}/docs", [Some("x"), None]))),
            ("/databases/docs/docs", Ok(("/databases/{db}/docs", [Some("docs"), None]))),
            ("/databases/x/docs/size", Ok(("/databases/{db}/docs/size", [Some("x"), None]))),
            // Goes back from the fixed segment `docs` to the parameter.
            ("/databases/x/docs/own", Ok(("/databases/{db}/{name}/own", [Some("x"), Some("docs")]))),
            ("/studio/a/b/c", Ok(("/studio/{*}", [None, None]))),
            ("/databases/", Err(NoMatch::Path)),
            ("/databases/x", Err(NoMatch::Path)),
            ("/databases//docs", Err(NoMatch::Path)),
            ("/databases/x/docs/", Err(NoMatch::Path)),
            ("/Databases", Err(NoMatch::Path)),
            ("/databases/x/docsize", Err(NoMatch::Path)),
            ("//databases", Err(NoMatch::Path)),
        ] {
            let found = router
                .find(&Method::GET, path)
                .map(|(route, parameters)| (*route, [parameters.get(path, 0), parameters.get(path, 1)]));
            assert_eq!(found, expected, "{path}");
        }
        assert_eq!(router.find(&Method::DELETE, "/databases/x/docs").err(), Some(NoMatch::Method));
        assert_eq!(
            router.find(&Method::PUT, "/databases/x/docs").map(|(route, _)| *route),
            Ok("/databases/{db}/docs")
        );
    }

    #[test]
    fn custom_methods_are_methods() {
        let reset = Method::from_bytes(b"RESET").expect("a method");
        let router = router(&[(reset.clone(), "/databases/{db}/indexes")]);
        assert!(router.find(&reset, "/databases/x/indexes").is_ok());
        assert_eq!(router.find(&Method::GET, "/databases/x/indexes").err(), Some(NoMatch::Method));
    }

    #[test]
    #[should_panic(expected = "is there twice")]
    fn a_route_can_be_there_once() {
        router(&[(Method::GET, "/databases/{db}/docs"), (Method::GET, "/databases/{name}/docs")]);
    }
}
