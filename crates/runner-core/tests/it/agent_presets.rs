//! Command lines of presets: what a session gets of the user's variables, login and folders.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use runner_core::agents::{AGENTS, CommandLine, LaunchContext, LaunchUser, Variables, agent_named};
use runner_core::model::tools::Tools;
use runner_core::schema::SchemaDocument;

use crate::agents::{PROVIDER_KEYS, command_line, launch_context, shown, user};

/// The command line of a preset for a user with this login file.
fn with_login_file(name: &str, path: &'static str, text: &str) -> CommandLine {
    let schema = SchemaDocument::AgentOutput.schema_bytes();
    let user = user();
    let files = BTreeMap::from([(path, text.to_owned())]);
    let context = launch_context(&user, &schema);
    let context = LaunchContext { user: LaunchUser { login_files: &files, ..context.user }, ..context };
    command_line(agent_named(name).unwrap(), "", &Tools::default(), &context)
}

#[test]
fn gemini_logs_in_as_the_user_does() {
    let settings = r#"{"security": {"auth": {"selectedType": "oauth-personal"}}, "mcpServers": {"odd": {}}}"#;
    let text = shown(&with_login_file("gemini", ".gemini/settings.json", settings));
    assert!(text.contains(r#""auth":{"selectedType":"oauth-personal"}"#) && !text.contains("odd"), "{text}");
    assert!(text.contains("home/.gemini/oauth_creds.json -> /home/me/.gemini/oauth_creds.json"), "{text}");
    let variables =
        "# mine\nODD=odd\nexport GEMINI_API_KEY = 'sk-odd'\nGOOGLE_CLOUD_PROJECT=\"p\"\nHOME=/odd\n";
    let line = with_login_file("gemini", ".gemini/.env", variables);
    let variable = |name: &str| line.environment.get(OsStr::new(name)).and_then(|value| value.to_str());
    assert_eq!((variable("GEMINI_API_KEY"), variable("GOOGLE_CLOUD_PROJECT")), (Some("sk-odd"), Some("p")));
    assert_eq!((variable("ODD"), variable("HOME")), (None, Some("/home/me")));
    assert!(!shown(&line).contains(".env"), "no file of variables is linked");
}

#[test]
fn copilot_gets_the_login_of_its_file_and_no_setting() {
    let config = "// Do not edit.\n{\"loggedInUsers\": [{\"login\": \"me\"}],\n\"hooks\": {\"odd\": 1}, \"model\": \"odd\"}";
    let line = with_login_file("copilot", ".copilot/config.json", config);
    let [file] = &line.files[..] else { panic!("{:?}", line.files) };
    assert_eq!(file.path, Path::new("/git/runner/answers/home/config.json"));
    assert_eq!(file.text, "{\"loggedInUsers\":[{\"login\":\"me\"}]}\n");
    assert!(line.links.is_empty() && line.login_files.is_empty());
}

#[test]
fn qwen_gets_the_providers_of_its_settings_and_their_keys() {
    let settings = r#"{"modelProviders": {"openai": [{"id": "m", "envKey": "MY_KEY"}, {"id": "n", "envKey": "N"}]},
        "env": {"MY_KEY": "sk-settings", "N": "sk-n", "ODD": "odd"}, "hooks": {"odd": 1},
        "security": {"auth": {"selectedType": "openai"}}}"#;
    let line = with_login_file("qwen", ".qwen/settings.json", settings);
    let variable = |name: &str| line.environment.get(OsStr::new(name)).and_then(|value| value.to_str());
    assert_eq!((variable("MY_KEY"), variable("N"), variable("ODD")), (Some("sk-mine"), Some("sk-n"), None));
    let text = shown(&line);
    assert!(text.contains(r#""auth":{"selectedType":"openai"}"#) && !text.contains("odd"), "{text}");
}

#[test]
fn a_preset_sees_its_keys_and_no_other_variable_of_the_user() {
    let mut user = user();
    user.insert("OPENROUTER_API_KEY".into(), "sk-router".into());
    let schema = SchemaDocument::AgentOutput.schema_bytes();
    let context = launch_context(&user, &schema);
    let secrets = |name: &str, keys: &str| -> Vec<String> {
        let line = command_line(agent_named(name).unwrap(), keys, &Tools::default(), &context);
        let environment = line.environment.iter();
        let secrets = environment.filter(|(_, value)| value.to_string_lossy().starts_with("s"));
        secrets.map(|(name, _)| name.to_string_lossy().into_owned()).collect()
    };
    assert_eq!(secrets("opencode", ""), ["ANTHROPIC_API_KEY", "OPENROUTER_API_KEY"]);
    assert_eq!(secrets("opencode", "env_inherit = [\"AWS_*\", \"CODEX_API_KEY\"]").len(), 4);
    assert_eq!(secrets("gemini", ""), [""; 0]);
    for preset in AGENTS.into_iter().filter(|agent| agent.is_preset()) {
        let line = command_line(preset, PROVIDER_KEYS, &Tools::default(), &context);
        let has = |name: &str| line.environment.contains_key(OsStr::new(name));
        assert!(
            has("PATH") && has("LC_TIME") && has("MY_KEY") && has("GIT_TERMINAL_PROMPT"),
            "{}",
            preset.name
        );
        assert!(!has("AWS_SECRET_ACCESS_KEY") && !has("MY_TOOL") && !has("GIT_DIR"), "{}", preset.name);
        assert!(!has("ANTHROPIC_API_KEY") && !has("OPENROUTER_API_KEY"), "{}: another provider", preset.name);
        assert!(line.login_files.is_empty() && line.links.is_empty(), "{}: another provider", preset.name);
    }
}

#[test]
fn state_and_login_of_a_preset_are_where_the_user_keeps_them() {
    let schema = SchemaDocument::AgentOutput.schema_bytes();
    let mut user = user();
    let places = |name: &str, user: &Variables| {
        let line =
            command_line(agent_named(name).unwrap(), "", &Tools::default(), &launch_context(user, &schema));
        (line.state_folders, line.login_files)
    };
    let (state, login) = places("opencode", &user);
    assert!(state.contains(&"/home/me/.cache/opencode".into()), "{state:?}");
    assert!(!state.iter().any(|folder| folder.ends_with(".config/opencode")), "{state:?}");
    assert_eq!(login, [Path::new("/home/me/.local/share/opencode/auth.json")]);
    user.insert("XDG_DATA_HOME".into(), "/data".into());
    let (state, login) = places("opencode", &user);
    assert!(state.contains(&"/data/opencode".into()), "{state:?}");
    assert_eq!(login, [Path::new("/data/opencode/auth.json")]);
    user.insert("PI_CODING_AGENT_DIR".into(), "/pi".into());
    assert_eq!(places("pi", &user), (Vec::new(), vec!["/pi/auth.json".into()]));
}

#[test]
fn web_tools_of_presets_are_off_if_the_network_is_for_package_managers() {
    let user = user();
    let schema = SchemaDocument::AgentOutput.schema_bytes();
    let context = launch_context(&user, &schema);
    let text = |name: &str, keys: &str| {
        shown(&command_line(agent_named(name).unwrap(), keys, &Tools::default(), &context))
    };
    for (preset, off) in [
        ("opencode", "\"webfetch\":\"deny\""),
        ("kilo", "\"webfetch\":\"deny\""),
        ("gemini", "\"exclude\":[\"google_web_search\",\"web_fetch\"]"),
        ("qwen", "--exclude-tools\nweb_fetch,web_search"),
        ("copilot", "write_agent,web_fetch,web_search"),
        ("grok", "reference_to_video,web_fetch,web_search"),
    ] {
        assert!(text(preset, "network = \"registries\"").contains(off), "{preset}");
        assert!(!text(preset, "network = \"full\"").contains(off), "{preset}");
    }
}
