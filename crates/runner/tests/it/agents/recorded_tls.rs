//! The recorder in front of a provider that speaks TLS, with a certificate of the test's own.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use testkit::oracle::assert_sound;
use testkit::test_repo::{TestRepo, run};

use crate::agents::real::{BOTH, WHOLE_RUN, command, model_of, setup, started};

/// A process that speaks TLS and passes everything on to the scripted model. It ends with the test.
struct TlsRelay {
    process: Child,
    folder: TempDir,
    url: String,
}

impl TlsRelay {
    fn start(model: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [certificate, key] = ["certificate.pem", "key.pem"].map(|name| folder.path().join(name));
        let options = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=provider -addext \
                       subjectAltName=IP:127.0.0.1";
        let mut openssl = Command::new("openssl");
        openssl.args(options.split_whitespace()).arg("-keyout").arg(&key).arg("-out").arg(&certificate);
        run(&mut openssl).ok();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/agents/tls_relay.py");
        let port = model.rsplit(':').next().unwrap();
        let mut python = Command::new("python3");
        python.arg(script).args([&certificate, &key]).arg(port).stdout(Stdio::piped());
        let mut process = python.spawn().unwrap();
        let mut port = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self { process, folder, url: format!("https://127.0.0.1:{}", port.trim()) }
    }

    fn certificate(&self) -> PathBuf {
        self.folder.path().join("certificate.pem")
    }
}

impl Drop for TlsRelay {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn recorded(kind: &str, url: &str) -> TestRepo {
    started(&setup(kind, url).executor_keys("record = true"))
}

#[test]
fn whole_run_over_tls_is_on_record() {
    for kind in BOTH {
        let model = model_of(WHOLE_RUN);
        let relay = TlsRelay::start(&model.url());
        let repo = recorded(kind, &relay.url);
        let ended = run(command(&repo, &["loop"]).env("CURL_CA_BUNDLE", relay.certificate()));
        let log = repo.iteration_file(1, "executor.log");
        assert_eq!(ended.code, Some(0), "{kind}: {}{}{log}", ended.stdout, ended.stderr);
        assert_eq!(repo.outcomes(), ["decomposed", "passed", "guard_failed", "passed"], "{kind}");
        let text = repo.iteration_file(1, "requests.jsonl");
        assert!(text.contains("[redacted]") && !text.contains("sk-dummy"), "{kind}: {text}");
        let count: u64 = (1..=4).map(|iter| repo.meta(iter)["requests"]["count"].as_u64().unwrap()).sum();
        assert_eq!(count, model.requests().len() as u64, "{kind}");
        assert_sound(&repo);
    }
}

#[test]
fn provider_with_an_untrusted_certificate_gets_no_request() {
    for kind in BOTH {
        let model = model_of(WHOLE_RUN);
        let relay = TlsRelay::start(&model.url());
        let repo = recorded(kind, &relay.url);
        run(&mut command(&repo, &["step"]));
        assert_eq!(repo.outcomes(), ["disconnected"], "{kind}: {}", repo.iteration_file(1, "executor.log"));
        assert!(model.requests().is_empty(), "{kind}: no request and no key is sent");
        let text = repo.iteration_file(1, "requests.jsonl");
        assert!(text.contains("certificate"), "{kind}: the reason is on record: {text}");
        assert_sound(&repo);
    }
}
