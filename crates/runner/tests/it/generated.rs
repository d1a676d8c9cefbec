//! Files that are made from the code: a test compares them, `just generate` writes them anew.

use std::path::Path;

use runner_core::config::Config;
use runner_core::schema::Document;
use runner_core::step::Outcome;

fn assert_generated(name: &str, bytes: &[u8]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        std::fs::write(&path, bytes).unwrap();
    }
    let found = std::fs::read(&path).unwrap_or_default();
    assert!(found == bytes, "{name} is not what the code says: run 'just generate'");
}

#[test]
fn each_schema_is_generated() {
    for document in Document::ALL {
        assert_generated(&format!("schemas/{}", document.file_name()), &document.schema_bytes());
    }
}

#[test]
fn the_table_of_failures_is_generated() {
    let page = format!(
        "# Failures\n\nA session without an answer that counts costs no attempt, whatever the reason. Each way to fail has one meaning, \
         decided by one\nfunction of the core.\n\nMade from the program itself: `just generate` writes it anew.\n\n{}",
        Outcome::failure_table()
    );
    assert_generated("docs/failures.md", page.as_bytes());
}

#[test]
fn the_command_line_reference_is_generated() {
    assert_generated("docs/cli.md", runner::cli::reference().as_bytes());
}

#[test]
fn the_configuration_reference_is_generated() {
    let page = format!(
        "# Configuration\n\n`.runner/state/config.toml`, written by `runner init` with every key and its default. The file is read \
         strictly:\nan unknown key is an error with its line. Changes take effect with the next `runner start`.\n\n\
         Made from the program itself: `just generate` writes it anew.\n\n{}\n## The file as it is written\n\n```toml\n{}```\n",
        Config::reference(),
        Config::documented_file()
    );
    assert_generated("docs/configuration.md", page.as_bytes());
}
