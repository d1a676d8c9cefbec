//! Files generated from the core's types.

use runner_core::config::Config;
use runner_core::schema::SchemaDocument;
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
