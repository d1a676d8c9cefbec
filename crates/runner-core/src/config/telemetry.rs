//! The `[telemetry]` table: traces of iterations for a collector of OpenTelemetry.

use schemars::JsonSchema;
use serde::Serialize;

use super::notify::{NotifySeconds, NotifyUrl};
use super::{read_keys, read_optional_keys};
use crate::strict::{BoundedInt, TomlTable};

/// Traces for OpenTelemetry: one request for every iteration, after its commit. They contain names, times, counts and outcomes, and neither
/// prompts nor output. A trace that cannot be delivered changes nothing: the runner reports it and continues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[serde(default)]
pub struct TelemetryConfig {
    /// Address of a collector that accepts OTLP over HTTP, without its path `/v1/traces`. "$NAME" takes the address from a variable of the
    /// environment. Headers come from `OTEL_EXPORTER_OTLP_HEADERS`. Without this key, nothing is sent.
    #[schemars(extend("examples" = ["http://127.0.0.1:4318", "$OTEL_EXPORTER_OTLP_ENDPOINT"]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub otlp_endpoint: Option<NotifyUrl>,
    /// Time limit for each request.
    pub timeout_secs: NotifySeconds,
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        Self { otlp_endpoint: None, timeout_secs: BoundedInt::fixed::<5>() }
    }
}

impl TelemetryConfig {
    pub(super) fn take(table: &mut TomlTable<'_>) -> Self {
        let mut telemetry = Self::default();
        read_keys!(table, telemetry: timeout_secs);
        read_optional_keys!(table, telemetry: otlp_endpoint);
        telemetry
    }
}
