//! Spans of requests, sent to an OpenTelemetry collector when there is one.
//!
//! A span follows the caller's `traceparent`, and is left out when the caller says that its trace is not recorded. A
//! collector that does not answer costs spans, never requests. See docs/decisions/traces.md.

use std::sync::Arc;
use std::time::Duration;

use hyper::{HeaderMap, Request, Response, StatusCode, Uri};
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{Span as _, SpanBuilder, SpanKind, Status, Tracer as _, TracerProvider};
use opentelemetry::{Context, KeyValue};
use opentelemetry_http::hyper::HyperClient;
use opentelemetry_http::{Bytes, HeaderExtractor, HttpClient, HttpError};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use prometheus_client::metrics::counter::Counter;
use thiserror::Error;
use tokio::runtime::Handle;

use crate::metrics::Asked;
use crate::settings::Traces as Settings;

/// How long the collector may take for one batch.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why spans cannot be sent.
#[derive(Debug, Error)]
pub enum TracesError {
    /// The address is not one that spans can be sent to.
    #[error(
        "spans cannot be sent to `{0}`: give the http:// address of a collector near by, such as http://127.0.0.1:4318"
    )]
    Address(String),
    /// The exporter could not be made.
    #[error("spans cannot be sent: {0}")]
    Exporter(String),
}

/// Where spans go.
pub(crate) struct Traces {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
}

/// A request, as its trace knows it.
pub(crate) struct Span(opentelemetry_sdk::trace::Span);

impl Span {
    pub(crate) fn trace_id(&self) -> String {
        self.0.span_context().trace_id().to_string()
    }
}

impl Traces {
    pub(crate) fn start(settings: &Settings, lost: Counter) -> Result<Self, TracesError> {
        let base = settings.endpoint.trim_end_matches('/');
        let address = || TracesError::Address(settings.endpoint.clone());
        let uri: Uri = base.parse().map_err(|_| address())?;
        if uri.scheme_str() != Some("http") || uri.host().is_none() {
            return Err(address());
        }
        let client = OnRuntime {
            client: Arc::new(HyperClient::with_default_connector(PATIENCE, None)),
            runtime: Handle::current(),
            lost,
        };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(format!("{base}/v1/traces"))
            .build()
            .map_err(|error| TracesError::Exporter(error.to_string()))?;
        let resource = Resource::builder()
            .with_service_name(settings.service.clone())
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .build();
        let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build();
        Ok(Self { tracer: provider.tracer("banyan"), provider })
    }

    /// A request begins. None when its trace is not recorded.
    pub(crate) fn begin(&self, asked: &Asked, headers: &HeaderMap) -> Option<Span> {
        let parent =
            TraceContextPropagator::new().extract_with_context(&Context::new(), &HeaderExtractor(headers));
        let name = match asked.function {
            "" => format!("{} {}", asked.method, asked.route),
            function => function.to_owned(),
        };
        let span =
            self.tracer.build_with_context(SpanBuilder::from_name(name).with_kind(SpanKind::Server), &parent);
        span.is_recording().then_some(Span(span))
    }

    /// A request has been answered, or its caller has gone.
    pub(crate) fn end(
        &self,
        Span(mut span): Span,
        asked: &Asked,
        outcome: Option<StatusCode>,
        id: &str,
        key: Option<String>,
    ) {
        span.set_attribute(KeyValue::new("http.request.method", asked.method));
        span.set_attribute(KeyValue::new("http.route", asked.route.clone()));
        span.set_attribute(KeyValue::new("banyan.request_id", id.to_owned()));
        if !asked.function.is_empty() {
            span.set_attribute(KeyValue::new("banyan.function", asked.function));
        }
        if let Some(key) = key {
            span.set_attribute(KeyValue::new("banyan.key", key));
        }
        if let Some(status) = outcome {
            span.set_attribute(KeyValue::new("http.response.status_code", i64::from(status.as_u16())));
        }
        if outcome.is_none_or(|status| status.is_server_error()) {
            span.set_status(Status::error(outcome.map_or("the caller went away", |_| "")));
        }
        span.end();
    }

    /// Hands over what is left.
    pub(crate) async fn stop(&self) {
        let provider = self.provider.clone();
        let stopped = tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(Duration::from_secs(1)));
        if let Ok(Err(error)) = stopped.await {
            tracing::warn!(%error, "the last spans could not be sent");
        }
    }
}

/// Sends from the exporter's own thread, which has no runtime, on the server's.
#[derive(Debug)]
struct OnRuntime {
    client: Arc<HyperClient>,
    runtime: Handle,
    lost: Counter,
}

#[async_trait::async_trait]
impl HttpClient for OnRuntime {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = Arc::clone(&self.client);
        let sent = self.runtime.spawn(async move { client.send_bytes(request).await });
        let answer = sent.await.map_err(HttpError::from).and_then(|answer| answer);
        let failed = match &answer {
            Ok(answer) if answer.status().is_success() => return Ok(answer.clone()),
            Ok(answer) => answer.status().to_string(),
            Err(error) => error.to_string(),
        };
        self.lost.inc();
        tracing::warn!(reason = failed, "the collector did not take a batch of spans");
        answer
    }
}
