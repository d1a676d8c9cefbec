//! kilo (`kilo run --format json`), a preset that was made from opencode and prints its format. It retries silently without end
//! when the provider fails.

use super::launch::{CommandLine, LaunchRequest};
use super::opencode::{OpencodeParser, complete_as};
use super::provider_error::classify_by_status;
use super::spec::{AgentSpec, OutputFormat, PresetLogin, ReportedUsage, Surroundings};

pub(super) static SPEC: AgentSpec = AgentSpec {
    name: "kilo",
    program: "kilo",
    package: "@kilocode/cli",
    npm_program: "@kilocode/cli-*/bin/kilo",
    tested_versions: &["7.7.7"],
    surroundings: SURROUNDINGS,
    native: None,
    complete,
    reports: ReportedUsage::TokensAndCost,
    output: OutputFormat {
        parser: || Box::new(OpencodeParser::default()),
        classify: classify_by_status,
        ends_with_event: false,
    },
};

const LOGIN: PresetLogin = PresetLogin {
    key_variables: &["KILO_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY"],
    files: &[".local/share/kilo/auth.json"],
    renewed_files: &[".local/share/kilo/auth.json"],
    command: "kilo auth login",
    ..PresetLogin::NONE
};

/// It loads rules, workflows and modes of these folders whatever its settings say.
const SURROUNDINGS: Surroundings = Surroundings {
    login: LOGIN,
    hidden_in_home: &[".kilo", ".kilocode"],
    hidden_in_repository: &[
        ".kilo",
        ".kilocode",
        ".kilocodemodes",
        ".kilocoderules",
        ".kilocoderules-architect",
        ".kilocoderules-ask",
        ".kilocoderules-code",
        ".kilocoderules-debug",
        ".kilocoderules-orchestrator",
    ],
    state_dirs: &[
        ".local/share/kilo",
        ".local/state/kilo",
        ".local/state/kilo-sandbox-policy",
        ".cache/kilo",
    ],
    ..Surroundings::NONE
};

fn complete(line: &mut CommandLine, request: &LaunchRequest<'_>) {
    complete_as("KILO", line, request);
    line.set("KILO_TELEMETRY_LEVEL", "off");
}
