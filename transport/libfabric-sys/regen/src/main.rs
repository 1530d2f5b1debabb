//! `libfabric-regen HEADERS OUTPUT`: the bindings of libfabric 1.17's headers, as a Rust file.
//!
//! `cargo xtask regen` runs this; nothing else does. The output depends on the headers and on the
//! locked version of bindgen alone, so that a difference always means that one of them changed.
#![forbid(unsafe_code)]

mod macros;
mod tidied;

use std::fs;
use std::panic;
use std::path::Path;
use std::process::ExitCode;

use bindgen::{Builder, CodegenConfig, Formatter};

/// The version that the bindings are taken from: structures only grow, so newer libraries fit too.
const PINNED: (u64, u64) = (1, 17);

/// Types of the system that the headers use; `libc` has them.
const SYSTEM_TYPES: &str = "iovec|pollfd";

/// A wait object that drags in POSIX threads, and an event of connected endpoints of open length:
/// nobody asks for either.
const UNUSED_TYPES: &str =
    "fi_eq_cm_entry|fi_mutex_cond|pthread_.*|__pthread.*|__atomic_wide_counter.*";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [headers, output] = args.as_slice() else {
        eprintln!("usage: libfabric-regen HEADERS OUTPUT");
        return ExitCode::from(2);
    };
    match regenerate(Path::new(headers), Path::new(output)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Missing(what)) => {
            eprintln!("libfabric-regen: {what}");
            ExitCode::from(MISSING)
        }
        Err(Failure::Broken(error)) => {
            eprintln!("libfabric-regen: {error}");
            ExitCode::FAILURE
        }
    }
}

/// How the process ends where the headers or libclang are missing: a reason to leave a check out.
const MISSING: u8 = 3;

enum Failure {
    /// This machine has not what is needed.
    Missing(String),
    /// It has, but something failed.
    Broken(String),
}

fn regenerate(headers: &Path, output: &Path) -> Result<(), Failure> {
    let fabric = headers.join("rdma/fabric.h");
    let text = fs::read_to_string(&fabric).map_err(|error| {
        let remedy = "apt-get install libfabric-dev (Debian 12), or give another folder";
        Failure::Missing(format!("{}: {error}; {remedy}", fabric.display()))
    })?;
    check_version(&text)
        .map_err(|error| Failure::Missing(format!("{}: {error}", fabric.display())))?;
    check_libclang().map_err(Failure::Missing)?;
    check_own_headers().map_err(Failure::Missing)?;
    let bindings = generate(headers).map_err(Failure::Broken)?;
    let whole = format!("{}{}", tidied::HEADER, tidied::tidied(&bindings));
    fs::write(output, whole)
        .map_err(|error| Failure::Broken(format!("{}: {error}", output.display())))
}

fn check_version(fabric: &str) -> Result<(), String> {
    let number = |name: &str| {
        let line = fabric.lines().find(|line| line.contains(name));
        line.and_then(|line| line.split_whitespace().last()?.parse().ok())
    };
    let found = number("define FI_MAJOR_VERSION").zip(number("define FI_MINOR_VERSION"));
    match found {
        Some(version) if version == PINNED => Ok(()),
        Some((major, minor)) => Err(format!(
            "libfabric {major}.{minor}; the bindings are taken from {}.{}",
            PINNED.0, PINNED.1
        )),
        None => Err("this is not libfabric's header: it defines no version".into()),
    }
}

/// bindgen opens libclang at run time, and panics if it cannot.
fn check_libclang() -> Result<(), String> {
    panic::set_hook(Box::new(|_| {}));
    let version = panic::catch_unwind(bindgen::clang_version);
    // The hook that was there before: from here on a panic is a bug that must be seen.
    drop(panic::take_hook());
    version.map(drop).map_err(|_| {
        "libclang not found: apt-get install libclang-dev, or set LIBCLANG_PATH to its folder"
            .into()
    })
}

/// libclang's library alone, without the headers that Debian has in another package, reads nothing.
fn check_own_headers() -> Result<(), String> {
    let probe = Builder::default().header_contents("probe.h", "#include <stddef.h>\n");
    let read = probe.generate();
    read.map(drop).map_err(|error| {
        format!("libclang without headers of its own ({error}): apt-get install libclang-dev")
    })
}

fn generate(headers: &Path) -> Result<String, String> {
    let wrapper = Path::new(env!("CARGO_MANIFEST_DIR")).join("wrapper.h");
    let builder = Builder::default()
        .header(wrapper.display().to_string())
        .clang_arg(format!("-I{}", headers.display()))
        .allowlist_type("fi_.*|fid|fid_.*")
        .allowlist_var("FI_.*")
        .blocklist_type(SYSTEM_TYPES)
        .blocklist_type(UNUSED_TYPES)
        .with_codegen_config(CodegenConfig::TYPES | CodegenConfig::VARS)
        .parse_callbacks(Box::new(macros::Kinds))
        .prepend_enum_name(false)
        .generate_comments(false)
        .derive_default(true)
        .layout_tests(true)
        .use_core()
        .ctypes_prefix("core::ffi")
        .raw_line("use libc::{iovec, pollfd};")
        .disable_header_comment()
        .formatter(Formatter::Prettyplease);
    let bindings = builder.generate().map_err(|error| error.to_string())?;
    Ok(bindings.to_string())
}
