//! Names of databases: letters, digits, `_`, `-` and `.`, compared without regard to case.

use std::borrow::Cow;

use crate::error::{ErrorKind, Result};

/// Bytes of the longest name; it is the name of a directory too.
const NAME_SIZE_MAX: usize = 128;

/// What a name is looked up by.
pub(crate) fn key(name: &str) -> Cow<'_, str> {
    match name.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase()) {
        true => Cow::Borrowed(name),
        false => Cow::Owned(name.to_lowercase()),
    }
}

/// Whether a new database may be called so.
pub(crate) fn check(name: &str) -> Result<()> {
    let refused = |why: String| Err(ErrorKind::BadRequest.error(why));
    if name.is_empty() {
        return refused("the database needs a name".to_owned());
    }
    if name.len() > NAME_SIZE_MAX {
        return refused(format!(
            "The name '{name}' has {} bytes; the longest allowed has {NAME_SIZE_MAX}",
            name.len()
        ));
    }
    if let Some(forbidden) = name.chars().find(|c| !c.is_alphanumeric() && !"_-.".contains(*c)) {
        return refused(format!(
            "The name '{name}' contains characters that are forbidden for use! ({forbidden:?}; letters, digits, '_', '-' and '.' are allowed)"
        ));
    }
    if name.starts_with('.') || name.ends_with('.') {
        return refused(format!("The name '{name}' must not begin or end with a dot"));
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked() {
        for name in ["a", "Shop", "shop-1.2_x", "Größe", "1"] {
            assert!(check(name).is_ok(), "{name}");
        }
        for name in [
            "",
            ".",
            "..",
            ".a",
            "a.",
            "a/b",
            "a\\b",
            "a b",
            "a\0",
            "a:b",
            "*",
            "a\n",
            "%2e",
            &"x".repeat(129),
        ] {
            assert_eq!(check(name).expect_err(name).kind(), ErrorKind::BadRequest, "{name}");
        }
        assert_eq!(
            (key("shop"), key("SHOP"), key("GRÖSSE")),
            ("shop".into(), "shop".into(), "grösse".into())
        );
    }
}
