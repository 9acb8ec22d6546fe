//! Which language a text is in.

/// The language of a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Language {
    /// C# LINQ.
    CSharp,
    /// JavaScript.
    JavaScript,
}

impl Language {
    /// The language of a map: C# starts with `from`, `docs`, `timeSeries` or `counters`.
    #[must_use]
    pub fn of_map(text: &str) -> Language {
        let text = without_comments(text);
        let word: String = text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let rest: String = text[word.len()..].chars().filter(|c| !c.is_whitespace()).take(5).collect();
        match word.as_str() {
            "from" | "docs" => Language::CSharp,
            "timeSeries" | "counters" if rest != ".map(" => Language::CSharp,
            _ => Language::JavaScript,
        }
    }

    /// The language of a reduce: C# starts with `from` or `results`.
    #[must_use]
    pub fn of_reduce(text: &str) -> Language {
        let text = without_comments(text);
        let word: String = text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        match word.as_str() {
            "from" | "results" => Language::CSharp,
            _ => Language::JavaScript,
        }
    }
}

/// The text without the space and comments it starts with.
fn without_comments(text: &str) -> &str {
    let mut text = text.trim_start();
    loop {
        if let Some(rest) = text.strip_prefix("//") {
            text = rest.split_once('\n').map_or("", |(_, rest)| rest).trim_start();
        } else if let Some(rest) = text.strip_prefix("/*") {
            text = rest.split_once("*/").map_or("", |(_, rest)| rest).trim_start();
        } else {
            return text;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages() {
        for text in [
            "from x in docs select x",
            "// a\n /* b */ docs.Users.Select(u => u)",
            "timeSeries.A.B.SelectMany(x => x)",
        ] {
            assert_eq!(Language::of_map(text), Language::CSharp, "{text}");
        }
        for text in [
            "map('Users', u => u)",
            "timeSeries.map('A', x => x)",
            "counters\n.map('A', x => x)",
            "fromage()",
            "",
        ] {
            assert_eq!(Language::of_map(text), Language::JavaScript, "{text}");
        }
        assert_eq!(Language::of_reduce("results.GroupBy(r => r.A)"), Language::CSharp);
        assert_eq!(Language::of_reduce("groupBy(x => x.a)"), Language::JavaScript);
    }
}
