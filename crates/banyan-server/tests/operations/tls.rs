//! TLS by certificate files.

use std::path::Path;
use std::sync::Arc;

use banyan_server::{ServeError, Settings, Tls};
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::wire::{Answer, Server, request, settings, until};

/// Writes a certificate for localhost and returns it.
fn certificate(dir: &Path) -> (Tls, CertificateDer<'static>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let tls = Tls { certificate: dir.join("cert.pem"), key: dir.join("key.pem") };
    std::fs::write(&tls.key, made.signing_key.serialize_pem()).unwrap();
    std::fs::write(&tls.certificate, made.cert.pem()).unwrap();
    (tls, made.cert.der().clone())
}

async fn shake(
    server: &Server,
    trusted: &CertificateDer<'static>,
    protocol: &str,
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, server.connect().await).await
}

#[tokio::test(flavor = "multi_thread")]
async fn both_protocols_are_spoken_over_tls() {
    let files = tempfile::tempdir().unwrap();
    let (tls, trusted) = certificate(files.path());
    let server = Server::start(Settings { tls: Some(tls), ..settings() }).await;

    let mut stream = shake(&server, &trusted, "http/1.1").await.unwrap();
    stream.write_all(request("POST", "/v1/call/session::create", "", "{}").as_bytes()).await.unwrap();
    assert_eq!(Answer::read(&mut stream).await.unwrap().status, 200);

    let stream = shake(&server, &trusted, "h2").await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(b"h2".as_slice()));
    asks_over_http2(server, stream).await;
}

/// Asks for something over HTTP/2, and stays until it is told that the server stops.
async fn asks_over_http2(server: Server, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    let connection = tokio::spawn(connection);
    let request = Request::post("https://localhost/v1/call/session::create")
        .body(Full::new(bytes::Bytes::from("{}")))
        .unwrap();
    let answer = sender.send_request(request).await.unwrap();
    assert_eq!(answer.status(), 200);
    assert!(answer.headers().contains_key("x-request-id"));
    assert!(answer.into_body().collect().await.unwrap().to_bytes().starts_with(b"{\"session_id\""));
    server.stop().await;
    connection.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn both_protocols_are_spoken_without_tls() {
    let server = Server::start(settings()).await;
    let mut stream = server.connect().await;
    let whole = request("POST", "/v1/call/session::create", "", "{}");
    // Its first letter could begin either.
    let (letter, rest) = whole.split_at(1);
    stream.write_all(letter.as_bytes()).await.unwrap();
    server.assert_serves().await;
    stream.write_all(rest.as_bytes()).await.unwrap();
    assert_eq!(Answer::read(&mut stream).await.unwrap().status, 200);
    let stream = server.connect().await;
    asks_over_http2(server, stream).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_does_not_speak_tls_is_hung_up_on_and_others_are_served() {
    let files = tempfile::tempdir().unwrap();
    let (tls, trusted) = certificate(files.path());
    let server = Server::start(Settings { tls: Some(tls), ..settings() }).await;
    let mut plain = server.connect().await;
    plain.write_all(request("GET", "/healthz", "", "").as_bytes()).await.unwrap();
    assert!(crate::wire::ended(&mut plain).await);
    let _silent = server.connect().await;
    let mut stream = shake(&server, &trusted, "http/1.1").await.unwrap();
    stream.write_all(request("GET", "/healthz", "", "").as_bytes()).await.unwrap();
    assert_eq!(Answer::read(&mut stream).await.unwrap().status, 200);
    // Neither an unfinished handshake nor an idle connection holds the server up.
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_certificate_is_taken_and_a_broken_one_is_not() {
    let files = tempfile::tempdir().unwrap();
    let (tls, first) = certificate(files.path());
    let server = Server::start(Settings { tls: Some(tls.clone()), ..settings() }).await;
    assert!(shake(&server, &first, "h2").await.is_ok());
    let (_, second) = certificate(files.path());
    until("the new certificate is shown", async || shake(&server, &second, "h2").await.is_ok()).await;
    assert!(shake(&server, &first, "h2").await.is_err());
    let log = crate::wire::log();
    std::fs::write(&tls.certificate, "nothing").unwrap();
    until("the broken one was noticed", async || log.text().contains("the new certificate cannot be used")).await;
    assert!(shake(&server, &second, "h2").await.is_ok());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_cannot_be_used_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let (tls, _) = certificate(dir.path());
    let start = async |tls: Tls| {
        let store = banyan::Banyan::in_memory(banyan::Options::default()).unwrap();
        let started = banyan_server::start(store, dir.path(), Settings { tls: Some(tls), ..settings() }).await;
        match started {
            Err(error @ ServeError::Tls(_)) => error.to_string(),
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("it started"),
        }
    };
    let missing = start(Tls { certificate: "/nowhere/cert.pem".into(), ..tls.clone() }).await;
    assert!(missing.contains("/nowhere/cert.pem"), "{missing}");
    let swapped = start(Tls { certificate: tls.key.clone(), key: tls.key.clone() }).await;
    assert!(swapped.contains("key.pem has no certificate"), "{swapped}");
    let other = tempfile::tempdir().unwrap();
    let (other, _) = certificate(other.path());
    let mixed = start(Tls { key: other.key, ..tls }).await;
    assert!(mixed.contains("do not work together"), "{mixed}");
}
