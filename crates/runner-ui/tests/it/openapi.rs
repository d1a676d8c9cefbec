//! Generates `openapi.json`, which the server sends, from the addresses and the types of the API.

use std::path::Path;

use runner_ui::api::ApiTypes;
use runner_ui::api::addresses::{ApiAddress, ApiResponse, OTHERS, REPOSITORY};
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

const FILE: &str = "openapi.json";

fn operation(address: &ApiAddress) -> Value {
    let in_path = address.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let mut parameters: Vec<Value> = in_path
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }))
        .collect();
    parameters.extend(address.query.iter().map(|(name, text)| {
        json!({ "name": name, "in": "query", "description": text, "schema": { "type": "string" } })
    }));
    let content = match address.response {
        ApiResponse::Json(name) => {
            json!({ "application/json": { "schema": { "$ref": format!("#/components/schemas/{name}") } } })
        }
        ApiResponse::Other(kind) => json!({ kind: {} }),
    };
    let error = json!({ "$ref": "#/components/schemas/ErrorResponse" });
    json!({ "get": {
        "summary": address.summary,
        "parameters": parameters,
        "responses": {
            "200": { "description": "the document", "content": content },
            "default": {
                "description": "why there is none",
                "content": { "application/json": { "schema": error } },
            },
        },
    } })
}

fn generated() -> String {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    let generator = settings.for_serialize().into_generator();
    let schema: Value = generator.into_root_schema_for::<ApiTypes>().into();
    let schemas = schema["components"]["schemas"].clone();
    assert!(schemas.is_object(), "{schema}");
    let paths: Map<String, Value> = REPOSITORY
        .iter()
        .chain(&OTHERS)
        .map(|address| (address.path.to_owned(), operation(address)))
        .collect();
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "runner-ui",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Read-only access to the runs of a repository, and to the results of an evaluation.",
        },
        "paths": paths,
        "components": { "schemas": schemas },
    });
    serde_json::to_string_pretty(&document).unwrap() + "\n"
}

#[test]
fn openapi_document_is_generated() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    let text = generated();
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(stored == text, "{FILE} is stale: run `just generate`");
}

#[test]
fn every_route_and_every_reference_is_described() {
    assert_eq!(REPOSITORY.map(|address| address.path), runner_ui::ROUTES);
    let document: Value = serde_json::from_str(&generated()).unwrap();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let text = document.to_string();
    let references = text.split("\"$ref\":\"").skip(1).filter_map(|rest| rest.split('"').next());
    for reference in references {
        let name = reference.strip_prefix("#/components/schemas/").unwrap_or(reference);
        assert!(schemas.contains_key(name), "{reference}");
    }
}
