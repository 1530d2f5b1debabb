//! `music fabric`: what the ranks of a job could be joined by on this host.

use std::net::{IpAddr, Ipv4Addr};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use transport::ofi::{Listed, Listing, OfiError, Provider, Usability, list};
use transport_core::Atomics;

use super::table::Table;
use crate::usage::{complain, print};

/// Options of `music fabric`.
#[derive(Args, Debug)]
pub(super) struct FabricOptions {
    /// The address of this host to try the providers on
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    source: IpAddr,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs it. A host without libfabric is no failure: it has shared memory.
pub(super) fn fabric(options: &FabricOptions) -> ExitCode {
    let found = list(options.source);
    let text = if options.json {
        format!("{:#}\n", as_json(&found))
    } else {
        as_text(&found)
    };
    print("music", &text).map_or_else(|code| code, |()| ExitCode::SUCCESS)
}

/// The value of `--fabric`.
///
/// # Errors
/// One line, if it names none.
pub(super) fn name(text: &str) -> Result<String, String> {
    if matches!(text, "auto" | "shm") {
        return Ok(text.to_owned());
    }
    if let Some(note) = Provider::note(text) {
        complain("music", &note);
    }
    Provider::from_name(text).map_err(|error| error.to_string())?;
    Ok(text.to_owned())
}

const ON_ONE_HOST: &str = "on one host: shared memory, without libfabric\n";

fn as_text(found: &Result<Listing, OfiError>) -> String {
    let listing = match found {
        Ok(listing) => listing,
        Err(error) => return format!("{error}\n{ON_ONE_HOST}between hosts: nothing\n"),
    };
    let mut usable = Table::new(&[
        ("provider", false),
        ("version", true),
        ("atomics", false),
        ("inject", true),
        ("signal", false),
        ("wait", false),
        ("put", true),
        ("fetch-add", true),
        ("address", false),
        ("memory", false),
    ]);
    let mut refused = Table::new(&[("not usable", false), ("why", false)]);
    for Listed {
        provider,
        usability,
    } in &listing.providers
    {
        match usability {
            Ok(found) => usable.row(row(provider, found)),
            Err(why) => refused.row(vec![provider.to_string(), why.clone()]),
        }
    }
    let between = match listing.chosen() {
        Some((provider, why)) => format!("between hosts: {provider}: {why}\n"),
        None => "between hosts: nothing is taken by itself; name one with --fabric\n".to_owned(),
    };
    format!(
        "libfabric {}\n\n{}\n{}\n{ON_ONE_HOST}{between}",
        listing.library,
        usable.text(),
        refused.text()
    )
}

fn row(provider: &Provider, found: &Usability) -> Vec<String> {
    let (major, minor) = found.version;
    let memory = match found.memory_mode.as_slice() {
        [] => "-".to_owned(),
        bits => bits.join(" "),
    };
    vec![
        provider.to_string(),
        format!("{major}.{minor}"),
        atomics(provider, found).to_owned(),
        found.inject_bytes.to_string(),
        found.signal.name().to_owned(),
        wait(found).to_owned(),
        micros(found.latency.put),
        found.latency.fetch_add.map_or("-".to_owned(), micros),
        found.address.clone(),
        memory,
    ]
}

/// Who applies atomic operations: the hardware, the provider on the target's processor, or our own
/// code there.
fn atomics(provider: &Provider, found: &Usability) -> &'static str {
    match found.atomics {
        Atomics::Native if provider.is_software() => "emulated",
        Atomics::Native => "native",
        Atomics::Emulated => "served",
        Atomics::Absent => "none",
    }
}

fn wait(found: &Usability) -> &'static str {
    if found.wait_descriptor { "fd" } else { "naps" }
}

fn micros(span: Duration) -> String {
    format!("{:.2} us", span.as_secs_f64() * 1e6)
}

fn as_json(found: &Result<Listing, OfiError>) -> Value {
    let listing = match found {
        Ok(listing) => listing,
        Err(error) => return json!({ "library": null, "why": error.to_string() }),
    };
    let providers = listing.providers.iter().map(|listed| {
        let name = listed.provider.as_str();
        match &listed.usability {
            Ok(found) => json!({
                "provider": name,
                "usable": true,
                "version": [found.version.0, found.version.1],
                "atomics": atomics(&listed.provider, found),
                "inject_bytes": found.inject_bytes,
                "signal": found.signal.name(),
                "wait": wait(found),
                "put_us": found.latency.put.as_secs_f64() * 1e6,
                "fetch_add_us": found.latency.fetch_add.map(|span| span.as_secs_f64() * 1e6),
                "address": found.address,
                "memory": found.memory_mode,
            }),
            Err(why) => json!({ "provider": name, "usable": false, "why": why }),
        }
    });
    let chosen = listing
        .chosen()
        .map(|(provider, why)| json!({ "provider": provider.as_str(), "why": why }));
    json!({
        "library": listing.library,
        "providers": providers.collect::<Vec<_>>(),
        "chosen": chosen,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_without_libfabric_is_told_what_it_has() {
        let none = Err(OfiError::Library("libfabric.so.1 is not here".into()));

        let text = as_text(&none);

        assert!(text.starts_with("libfabric.so.1 is not here\n"));
        assert!(text.contains("on one host: shared memory"));
        assert_eq!(as_json(&none)["library"], Value::Null);
    }
}
