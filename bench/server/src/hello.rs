//! The mark: hyper with nothing around it, answering as many bytes as `/build/version` has.

use std::convert::Infallible;

use anyhow::Result;
use bytes::Bytes;
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

const ANSWER: &[u8] =
    br#"{"BuildVersion":71028,"ProductVersion":"7.1","CommitHash":"082d079","FullVersion":"7.1.5"}"#;

/// Listens on a free port, prints the address, and serves until it is killed.
pub(crate) fn serve() -> Result<()> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("http://{}", listener.local_addr()?);
        loop {
            let (socket, _) = listener.accept().await?;
            socket.set_nodelay(true)?;
            tokio::spawn(async move {
                let answer = service_fn(|_| async {
                    let mut response = http::Response::new(Full::new(Bytes::from_static(ANSWER)));
                    let json = http::HeaderValue::from_static("application/json; charset=utf-8");
                    response.headers_mut().insert(http::header::CONTENT_TYPE, json);
                    Ok::<_, Infallible>(response)
                });
                // An error is the driver's end of the connection.
                let _ = http1::Builder::new().serve_connection(TokioIo::new(socket), answer).await;
            });
        }
    })
}
