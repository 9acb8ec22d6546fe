//! The path of a request as the router takes it: decoded, and free of tricks.

use std::borrow::Cow;

use crate::query_string::percent_decode;

/// Why a path is refused before any route is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathError {
    /// Longer than a `u32` can count, or not starting with `/`.
    Malformed,
    /// Escapes that are not UTF-8.
    NotUtf8,
    /// A `/`, `\` or control character that was escaped: it would be part of a name, where names are parts of file paths.
    Forbidden,
    /// A segment `.` or `..`.
    Dots,
}

impl PathError {
    /// What to tell the client.
    pub(crate) fn message(self) -> &'static str {
        match self {
            PathError::Malformed => "the path of the URL cannot be read",
            PathError::NotUtf8 => "the path of the URL is not UTF-8 when decoded",
            PathError::Forbidden => {
                "a segment of the URL's path contains an escaped slash, backslash or control character"
            }
            PathError::Dots => "the path of the URL contains a segment '.' or '..'",
        }
    }
}

/// A decoded path whose segments have no `/`, no control characters, and are not dots.
#[derive(Debug)]
pub(crate) struct NormalPath;

impl NormalPath {
    /// Decodes segment by segment; borrows when there is nothing to decode.
    pub(crate) fn parse(path: &str) -> Result<Cow<'_, str>, PathError> {
        if !path.starts_with('/') || u32::try_from(path.len()).is_err() {
            return Err(PathError::Malformed);
        }
        if path.bytes().any(|byte| byte == b'%') {
            return NormalPath::decode(path).map(Cow::Owned);
        }
        let mut after_slash = false;
        for byte in path.bytes() {
            // Only a segment that starts with a dot can be one of the two; most paths have none.
            if after_slash && byte == b'.' {
                check_dots(path)?;
                break;
            }
            after_slash = byte == b'/';
        }
        Ok(Cow::Borrowed(path))
    }

    fn decode(path: &str) -> Result<String, PathError> {
        let mut decoded = String::with_capacity(path.len());
        for segment in path[1..].split('/') {
            let segment = percent_decode(segment, false).ok_or(PathError::NotUtf8)?;
            if segment.contains(|c: char| c == '/' || c == '\\' || c.is_control()) {
                return Err(PathError::Forbidden);
            }
            decoded.push('/');
            decoded.push_str(&segment);
        }
        check_dots(&decoded)?;
        Ok(decoded)
    }
}

fn check_dots(path: &str) -> Result<(), PathError> {
    if path.split('/').any(|segment| segment == "." || segment == "..") {
        return Err(PathError::Dots);
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn paths_are_decoded_or_refused() {
        for (path, expected) in [
            ("/databases/x/docs", Ok("/databases/x/docs")),
            ("/databases/w%31/%64ocs", Ok("/databases/w1/docs")),
            ("/databases/%C3%A9/docs", Ok("/databases/é/docs")),
            ("/a/.hidden/..b", Ok("/a/.hidden/..b")),
            ("/a+b", Ok("/a+b")),
            ("/a%zz", Ok("/a%zz")),
            ("/databases/../etc", Err(PathError::Dots)),
            ("/databases/./x", Err(PathError::Dots)),
            ("/databases/%2e%2E/x", Err(PathError::Dots)),
            ("/databases/a%2f..%2fb/docs", Err(PathError::Forbidden)),
            ("/databases/a%5Cb/docs", Err(PathError::Forbidden)),
            ("/databases/a%00/docs", Err(PathError::Forbidden)),
            ("/databases/%ff%fe/docs", Err(PathError::NotUtf8)),
            ("databases", Err(PathError::Malformed)),
            ("*", Err(PathError::Malformed)),
            ("", Err(PathError::Malformed)),
        ] {
            assert_eq!(NormalPath::parse(path).as_deref().map_err(|error| *error), expected, "{path}");
        }
    }
}
