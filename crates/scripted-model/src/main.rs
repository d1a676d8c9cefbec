//! Runs the server as a program: `scripted-model --script FILE [--port N] [--port-file FILE] [--log FILE]`.

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
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, Box<dyn Error>> {
        let mut options = Self::default();
        while let Some(option) = args.next() {
            let value = args.next().ok_or_else(|| format!("`{option}` needs a value\n{USAGE}"))?;
            match option.as_str() {
                "--script" => options.script = Some(value.into()),
                "--port" => {
                    options.port = value.parse().map_err(|_| format!("`{value}` is not a port number"))?;
                }
                "--port-file" => options.port_file = Some(value.into()),
                "--log" => options.log = Some(value.into()),
                _ => return Err(format!("unknown option `{option}`\n{USAGE}").into()),
            }
        }
        Ok(options)
    }
}

#[expect(clippy::print_stderr, reason = "a test program without a reporter: this is its only message")]
fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

#[expect(clippy::print_stdout, reason = "a test program: the caller reads the address from it")]
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

/// Renames the finished file into place, so that a waiting test never reads half a number.
fn write_port(path: &Path, port: u16) -> std::io::Result<()> {
    let temporary = path.with_extension("tmp");
    std::fs::write(&temporary, port.to_string())?;
    std::fs::rename(temporary, path)
}
