//! `jackdaw serve`: starts the server and runs it until it is asked to stop.
//!
//! Its flags are the settings of `jackdaw_server::SETTINGS`, and `--settings` names a file of them.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::builder::{PossibleValue, ValueParser};
use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches};
use jackdaw_server::settings::ENVIRONMENT_PREFIX;
use jackdaw_server::{LogControl, SETTINGS, Server, Settings};
use tokio::signal::unix::{SignalKind, signal};

/// The environment variable that names the settings file.
const FILE_VARIABLE: &str = "JACKDAW_SETTINGS";

const MORE: &str = "\
Each setting can also be given as an environment variable (JACKDAW_DATA_DIR for --data-dir) or in the settings file
(data-dir = \"...\"; TOML, or JSON when the file's name ends in .json). A flag goes before the environment, the
environment before the file. Unknown names are errors.";

/// What was given on the command line, by name.
pub(crate) struct Arguments {
    file: Option<PathBuf>,
    given: Vec<(&'static str, String)>,
}

impl clap::Args for Arguments {
    fn augment_args(command: Command) -> Command {
        let file = Arg::new("settings")
            .long("settings")
            .value_name("FILE")
            .value_parser(ValueParser::path_buf())
            .help(format!("A file of settings [env: {FILE_VARIABLE}]"));
        let command = command.after_help(MORE).arg(file);
        SETTINGS.iter().fold(command, |command, setting| {
            let default = match setting.default {
                "" => String::new(),
                default => format!(" [default: {default}]"),
            };
            let arg = Arg::new(setting.name)
                .long(setting.name)
                .value_name(setting.value)
                .action(ArgAction::Set)
                .help(format!("{}{default}", setting.help));
            // `--log-requests` alone means true.
            command.arg(match setting.value {
                "BOOL" => arg
                    .num_args(0..=1)
                    .default_missing_value("true")
                    .value_parser([PossibleValue::new("true"), PossibleValue::new("false")]),
                _ => arg,
            })
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Arguments::augment_args(command)
    }
}

impl FromArgMatches for Arguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Arguments, clap::Error> {
        let given = SETTINGS.iter().filter_map(|setting| {
            matches.get_one::<String>(setting.name).map(|value| (setting.name, value.clone()))
        });
        Ok(Arguments { file: matches.get_one::<PathBuf>("settings").cloned(), given: given.collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Arguments::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Starts the server; returns when it has stopped.
pub(crate) fn run(arguments: Arguments) -> Result<ExitCode> {
    let settings = settings(arguments)?;
    let log = LogControl::start(&settings)?;
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if settings.worker_threads > 0 {
        runtime.worker_threads(settings.worker_threads);
    }
    let runtime = runtime.enable_all().thread_name("jackdaw").build().context("cannot start threads")?;
    runtime.block_on(serve(settings, log))?;
    Ok(ExitCode::SUCCESS)
}

/// Default, file, environment, flags: what comes later goes before.
fn settings(arguments: Arguments) -> Result<Settings> {
    let mut settings = Settings::default();
    let file = arguments.file.or_else(|| std::env::var_os(FILE_VARIABLE).map(PathBuf::from));
    if let Some(file) = file {
        settings.read_file(&file)?;
    }
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    settings.read_environment(
        variables.filter(|(name, _)| name.starts_with(ENVIRONMENT_PREFIX) && name != FILE_VARIABLE),
    )?;
    for (name, value) in &arguments.given {
        settings.set(&format!("--{name}"), name, value)?;
    }
    settings.check()?;
    Ok(settings)
}

async fn serve(settings: Settings, log: LogControl) -> Result<()> {
    // Before the server listens: whoever sees the URL may stop it at once.
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for signals")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for signals")?;
    // A write that would make a file longer than allowed (`ulimit -f`) is an error like a full disk, and would otherwise end the process.
    let _file_size = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))
        .context("cannot take signals")?;
    let server = Server::start(settings, log).await?;
    // For whoever started it with port 0: the only line on standard output.
    println!("{}", server.url());
    tokio::select! {
        _ = terminate.recv() => tracing::info!("asked to terminate"),
        _ = interrupt.recv() => tracing::info!("interrupted"),
    }
    tokio::select! {
        () = server.stop() => Ok(()),
        _ = interrupt.recv() => anyhow::bail!("interrupted again while stopping; what was acknowledged is safe"),
    }
}
