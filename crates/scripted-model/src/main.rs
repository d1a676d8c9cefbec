//! The server as a program: `scripted-model --script FILE [--port N] [--port-file FILE] [--log FILE]`.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use scripted_model::{ModelScript, ScriptedModel};

const USAGE: &str = "usage: scripted-model --script FILE [--port N] [--port-file FILE] [--log FILE]";

#[derive(Default)]
struct ServerOptions {
    script: Option<PathBuf>,
    port: u16,
    port_file: Option<PathBuf>,
    log: Option<PathBuf>,
}

impl ServerOptions {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, Box<dyn Error>> {
        let mut options = Self::default();
        while let Some(word) = words.next() {
            let value = words.next().ok_or_else(|| format!("`{word}` needs a value\n{USAGE}"))?;
            match word.as_str() {
                "--script" => options.script = Some(value.into()),
                "--port" => options.port = value.parse().map_err(|_| format!("`{value}` is no port"))?,
                "--port-file" => options.port_file = Some(value.into()),
                "--log" => options.log = Some(value.into()),
                _ => return Err(format!("`{word}` is not known\n{USAGE}").into()),
            }
        }
        Ok(options)
    }
}

#[expect(clippy::print_stderr, reason = "a small program for tests: this is its one message")]
fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

#[expect(
    clippy::print_stdout,
    reason = "a small program for tests: whoever starts it reads where it listens"
)]
fn serve() -> Result<(), Box<dyn Error>> {
    let options = ServerOptions::parse(std::env::args().skip(1))?;
    let path = options.script.ok_or(USAGE)?;
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let script = ModelScript::parse(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    let model = ScriptedModel::start_at(script, options.port, options.log.as_deref())?;
    if let Some(path) = &options.port_file {
        write_port(path, model.address().port())?;
    }
    println!("listening on {}", model.address());
    model.serve();
    Ok(())
}

/// Whoever waits for the file finds the whole number in it.
fn write_port(path: &Path, port: u16) -> std::io::Result<()> {
    let beside = path.with_extension("tmp");
    std::fs::write(&beside, port.to_string())?;
    std::fs::rename(beside, path)
}
