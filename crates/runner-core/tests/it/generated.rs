//! Reference pages and schemas that are generated from the core's types.

use runner_core::commit_message;
use runner_core::config::Config;
use runner_core::schema::SchemaDocument;
use runner_core::step::Event;
use runner_core::verify::Rule;
use testkit::generated::assert_generated;

#[test]
fn each_schema_is_generated() {
    for document in SchemaDocument::ALL {
        assert_generated(&format!("schemas/{}", document.file_name()), &document.schema_bytes());
    }
}

#[test]
fn the_configuration_reference_is_generated() {
    let page = format!(
        "# Configuration\n\n`.runner/state/config.toml`, written by `runner init` with every key and its default. The file is read \
         strictly:\nan unknown key is an error with its line. Changes take effect with the next `runner start`.\n\n\
         Generated from the program: run `just generate` to update it.\n\n{}\n## The default file\n\n```toml\n{}```\n",
        Config::reference(),
        Config::documented_file()
    );
    assert_generated("docs/reference/configuration.md", page.as_bytes());
}

const GENERATED: &str = "Generated from the program: run `just generate` to update it.";

#[test]
fn the_page_about_commits_is_generated() {
    let page = format!(
        "# Commits\n\nEvery commit of the runner on a run's branch has a subject, an optional body that is indented by two spaces, and \
         trailers as its\nlast paragraph. [`runner verify`](../guide/verify.md) derives each of them again.\n\n{GENERATED}\n\n{}",
        commit_message::reference()
    );
    assert_generated("docs/reference/commits.md", page.as_bytes());
}

#[test]
fn the_page_about_events_is_generated() {
    let page = format!(
        "# Events\n\n`runner loop --json` prints one line of JSON per event, and `events.jsonl` in an iteration's folder has the same lines \
         with\n`t_ms`, the time in milliseconds since 1970. The JSON Schema is [event.schema.json](../../schemas/event.schema.json). Readers \
         should ignore\nevents and fields that they do not know.\n\n{GENERATED}\n\n{}",
        Event::reference()
    );
    assert_generated("docs/reference/events.md", page.as_bytes());
}

#[test]
fn the_table_of_verify_rules_is_generated() {
    let page = format!(
        "# Rules of `runner verify`\n\n[`runner verify`](../guide/verify.md) checks every commit of a run against these rules and reports each \
         violation with its\ncommit and the rule's name.\n\n{GENERATED}\n\n{}",
        Rule::table()
    );
    assert_generated("docs/reference/verify-rules.md", page.as_bytes());
}
