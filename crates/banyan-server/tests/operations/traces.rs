//! Spans, as a collector receives them.

use std::sync::Mutex;

use banyan_server::{Settings, Traces};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::wire::{Server, settings};

/// Takes spans for ever.
async fn collect(listener: TcpListener, batches: &'static Mutex<Vec<ExportTraceServiceRequest>>) {
    while let Ok((mut stream, _)) = listener.accept().await {
        tokio::spawn(async move {
            loop {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let Ok(byte) = stream.read_u8().await else { return };
                    head.push(byte);
                }
                let head = String::from_utf8(head).unwrap().to_lowercase();
                assert!(head.starts_with("post /v1/traces "), "{head}");
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
                let mut body = vec![0; length.parse().unwrap()];
                stream.read_exact(&mut body).await.unwrap();
                batches.lock().unwrap().push(ExportTraceServiceRequest::decode(body.as_slice()).unwrap());
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
            }
        });
    }
}

fn text(span: &Span, key: &str) -> String {
    let attribute = span.attributes.iter().find(|attribute| attribute.key == key).unwrap();
    match attribute.value.clone().unwrap().value.unwrap() {
        Value::StringValue(text) => text,
        Value::IntValue(number) => number.to_string(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_becomes_a_span_of_the_callers_trace() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}/", listener.local_addr().unwrap());
    let batches: &'static Mutex<Vec<ExportTraceServiceRequest>> = Box::leak(Box::default());
    tokio::spawn(collect(listener, batches));
    let traces = Traces { endpoint, service: "test".to_owned() };
    let server = Server::start(Settings { traces: Some(traces), ..settings() }).await;
    let recorded = "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\nx-request-id: one\r\n";
    let ignored = "traceparent: 00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00\r\nx-request-id: two\r\n";
    server.ask("POST", "/v1/call/session::create", recorded, "{}").await;
    server.ask("POST", "/v1/call/session::create", ignored, "{}").await;
    server.get("/healthz", "traceparent: nonsense\r\nx-request-id: three\r\n").await;
    // Stopping hands over what is left.
    server.stop().await;

    let batches = batches.lock().unwrap();
    let resource = format!("{:?}", batches[0].resource_spans[0].resource);
    assert!(resource.contains("service.name") && resource.contains("test"), "{resource}");
    let spans: Vec<&Span> = batches
        .iter()
        .flat_map(|batch| &batch.resource_spans)
        .flat_map(|resource| &resource.scope_spans)
        .flat_map(|scope| &scope.spans)
        .collect();
    let named: Vec<String> = spans.iter().map(|span| text(span, "banyan.request_id")).collect();
    assert_eq!(named, ["one", "three"]);
    let span = spans[0];
    assert_eq!(span.name, "session::create");
    assert_eq!(span.trace_id, 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c_u128.to_be_bytes());
    assert_eq!(span.parent_span_id, 0xb7ad_6b71_6920_3331_u64.to_be_bytes());
    assert_eq!(text(span, "http.route"), "/v1/call/{function_id}");
    assert_eq!(text(span, "http.response.status_code"), "200");
    assert!(span.end_time_unix_nano >= span.start_time_unix_nano);
    assert_eq!((spans[1].name.as_str(), spans[1].parent_span_id.len()), ("GET /healthz", 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_not_there_costs_no_request() {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let traces = Traces { endpoint: format!("http://{gone}"), service: "test".to_owned() };
    let server = Server::start(Settings { traces: Some(traces), ..settings() }).await;
    server.assert_serves().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_cannot_be_used_is_named() {
    for endpoint in ["https://collector.example", "collector", ""] {
        let store = banyan::Banyan::in_memory(banyan::Options::default()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let traces = Some(Traces { endpoint: endpoint.to_owned(), service: "test".to_owned() });
        let started = banyan_server::start(store, dir.path(), Settings { traces, ..settings() }).await;
        let said = started.err().expect("it does not start").to_string();
        assert!(said.contains(&format!("`{endpoint}`")), "{said}");
    }
}
