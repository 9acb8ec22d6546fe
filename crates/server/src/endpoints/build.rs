//! `/build/version`: which version of the protocol the server speaks.

use bytes::Bytes;
use http::Method;

use crate::error::Result;
use crate::request::ServerRequest;
use crate::response::Response;
use crate::routes::Routes;

/// Numbers of the version whose protocol this is; clients choose what they send by them.
pub(crate) const BUILD_VERSION: i32 = 71028;
pub(crate) const PRODUCT_VERSION: &str = "7.1";
pub(crate) const FULL_VERSION: &str = "7.1.5";
pub(crate) const COMMIT_HASH: &str = "082d079";

/// The same for ever, so it is not put together for each request. A test compares it with the constants.
const ANSWER: &[u8] =
    br#"{"BuildVersion":71028,"ProductVersion":"7.1","CommitHash":"082d079","FullVersion":"7.1.5"}"#;

pub(crate) fn routes(routes: &mut Routes) {
    routes.server_inline(Method::GET, "/build/version", version);
}

fn version(_: ServerRequest) -> Result<Response> {
    Ok(Response::json(Bytes::from_static(ANSWER)))
}

#[cfg(test)]
#[allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn the_answer_says_what_the_constants_say() {
        let expected = serde_json::json!({
            "BuildVersion": BUILD_VERSION,
            "ProductVersion": PRODUCT_VERSION,
            "CommitHash": COMMIT_HASH,
            "FullVersion": FULL_VERSION,
        });
        assert_eq!(expected.to_string().as_bytes(), ANSWER);
        assert!(crate::response::SERVER_VERSION == format!("{FULL_VERSION}.{BUILD_VERSION}"));
    }
}
