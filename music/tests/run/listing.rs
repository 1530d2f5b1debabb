//! `music fabric` on machines with Debian's libfabric, with a newer one, and without any.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::playground::{Finished, Playground, binary, finish, start};

/// What a program says that finds no libfabric where the system looks for it.
const ABSENT: &str = "libfabric not found (searched libfabric.so.1: cannot open shared object \
                      file: No such file or directory); apt-get install libfabric1, or module load \
                      libfabric, or set TUTTI_LIBFABRIC";

/// `music fabric` with this library, or with the system's.
fn fabric(library: Option<&Path>, options: &[&str]) -> Finished {
    let play = Playground::new();
    let mut command = play.command("music", &["fabric"]);
    command.args(options).env_remove("TUTTI_LIBFABRIC");
    if let Some(library) = library {
        command.env("TUTTI_LIBFABRIC", library);
    }
    finish(start(&mut command))
}

/// What it lists as JSON.
#[track_caller]
fn listing(library: Option<&Path>) -> Value {
    let finished = fabric(library, &["--json"]);
    finished.succeeds();
    serde_json::from_str(&finished.stdout).unwrap()
}

/// The entry of a provider.
#[track_caller]
fn provider<'a>(listing: &'a Value, name: &str) -> &'a Value {
    let providers = listing["providers"].as_array().unwrap();
    let mut entries = providers.iter().filter(|entry| entry["provider"] == name);
    let entry = entries
        .next()
        .unwrap_or_else(|| panic!("no {name}: {listing:#}"));
    assert!(entries.next().is_none(), "{name} twice: {listing:#}");
    entry
}

/// What any libfabric offers: `tcp;ofi_rxm` and `sockets` on 127.0.0.1, and no hardware that a
/// machine without a network card for it could have.
#[track_caller]
fn offers_software(listing: &Value) {
    for (name, inject, wait) in [("tcp;ofi_rxm", 64, "fd"), ("sockets", 255, "naps")] {
        let entry = provider(listing, name);
        assert_eq!(entry["usable"], true, "{entry}");
        assert_eq!(entry["atomics"], "emulated", "{entry}");
        assert_eq!(entry["inject_bytes"], inject, "{entry}");
        assert_eq!(entry["signal"], "order", "{entry}");
        assert_eq!(entry["wait"], wait, "{entry}");
        for latency in ["put_us", "fetch_add_us"] {
            assert!(entry[latency].as_f64().unwrap() > 0.0, "{entry}");
        }
        let address = entry["address"].as_str().unwrap();
        assert!(address.contains("127.0.0.1:"), "{entry}");
    }
    let gni = provider(listing, "gni");
    assert_eq!(gni["usable"], false, "{gni}");
    assert!(!gni["why"].as_str().unwrap().is_empty(), "{gni}");
}

/// The text says what the JSON does, a line each.
#[track_caller]
fn says_the_same(library: Option<&Path>, listing: &Value) {
    let finished = fabric(library, &[]);
    let text = &finished.succeeds().stdout;
    let version = listing["library"].as_str().unwrap();
    assert!(text.starts_with(&format!("libfabric {version}")), "{text}");
    for entry in listing["providers"].as_array().unwrap() {
        let name = entry["provider"].as_str().unwrap();
        let first = |line: &&str| line.split(' ').next() == Some(name);
        let lines: Vec<&str> = text.lines().filter(first).collect();
        let [line] = lines[..] else {
            panic!("{name}: {lines:?} in\n{text}");
        };
        let said = if entry["usable"] == true {
            "atomics"
        } else {
            "why"
        };
        assert!(line.contains(entry[said].as_str().unwrap()), "{line}");
    }
    let chosen = &listing["chosen"];
    let (name, why) = (&chosen["provider"], &chosen["why"]);
    let between = format!(
        "between hosts: {}: {}\n",
        name.as_str().unwrap(),
        why.as_str().unwrap()
    );
    assert!(text.contains("on one host: shared memory"), "{text}");
    assert!(text.ends_with(&between), "{text}");
}

#[test]
fn the_systems_libfabric_is_listed() {
    let here = listing(None);
    let Some(version) = here["library"].as_str() else {
        println!("skipped: {}", here["why"].as_str().unwrap());
        return;
    };

    offers_software(&here);
    says_the_same(None, &here);
    if version == "1.17" {
        // As Debian 12 has it: bare tcp is called net there, and its atomics are a false promise.
        assert_eq!(provider(&here, "tcp")["usable"], false, "{here:#}");
        assert_eq!(provider(&here, "net")["atomics"], "served", "{here:#}");
    }
}

#[test]
fn a_newer_libfabric_is_listed_when_it_is_named() {
    let Some(library) = std::env::var_os("TUTTI_LIBFABRIC_NEWER").map(PathBuf::from) else {
        println!("skipped: TUTTI_LIBFABRIC_NEWER names no other library");
        return;
    };

    let newer = listing(Some(&library));

    let version = newer["library"]
        .as_str()
        .unwrap_or_else(|| panic!("{newer:#}"));
    assert!(version.starts_with("2."), "{version}");
    offers_software(&newer);
    says_the_same(Some(&library), &newer);
    let tcp = provider(&newer, "tcp");
    assert_eq!((&tcp["usable"], &tcp["wait"]), (&json!(true), &json!("fd")));
    assert_eq!(tcp["atomics"], "served", "{tcp}");
    assert_eq!(tcp["fetch_add_us"], Value::Null, "{tcp}");
}

/// A machine in a folder: our programs, and the libraries that they are linked with.
fn machine(play: &Playground) -> PathBuf {
    let root = play.path("machine");
    let music = binary("music");
    let linked = Command::new("ldd").arg(&music).output().unwrap();
    let linked = String::from_utf8(linked.stdout).unwrap();
    let libraries = linked
        .split_whitespace()
        .filter(|word| word.starts_with('/'));
    for library in libraries.map(Path::new) {
        let copy = root.join(library.strip_prefix("/").unwrap());
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::copy(library, copy).unwrap();
    }
    for folder in ["bin", "proc", "dev", "tmp"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    for program in ["music", "population", "spikecheck"] {
        fs::copy(binary(program), root.join("bin").join(program)).unwrap();
    }
    let example = "two-populations.music";
    fs::copy(play.path(example), root.join(example)).unwrap();
    root
}

#[test]
fn a_machine_without_libfabric_says_what_to_install_and_has_shared_memory() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: a machine in a folder needs root");
        return;
    }
    let play = Playground::new();
    let root = machine(&play);
    // A folder of processes and of devices only where one may mount them.
    const ENTER: &str = "mount --rbind /proc \"$0/proc\" && mount --rbind /dev \"$0/dev\" && \
                         exec chroot \"$0\" \"$@\"";
    let inside = |program: &str, arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", ENTER]).arg(&root);
        command.arg(format!("/bin/{program}")).args(arguments);
        command
            .env_remove("TUTTI_LIBFABRIC")
            .env("TUTTI_HEAP_MIB", "4");
        command.env_remove("LD_LIBRARY_PATH").current_dir("/");
        finish(start(&mut command))
    };
    let mut alone = Command::new("chroot");
    alone.arg(&root).args(["/bin/music", "fabric"]);
    alone
        .env_remove("TUTTI_LIBFABRIC")
        .env_remove("LD_LIBRARY_PATH");

    let listed = finish(start(&mut alone));

    let nothing = "on one host: shared memory, without libfabric\nbetween hosts: nothing\n";
    assert_eq!(listed.succeeds().stdout, format!("{ABSENT}\n{nothing}"));

    let entered = inside("music", &["fabric"]);
    if entered.stderr.contains("unshare failed") || entered.stderr.contains("mount: ") {
        let why = entered.stderr.trim();
        println!("skipped: namespaces cannot be made here: {why}");
        return;
    }
    let file = "/two-populations.music";
    inside("music", &["run", file]).succeeds();
    let checked = inside("spikecheck", &[file]);
    let clean = " delivered, 0 late, 0 lost, 0 foreign, 0 duplicate";
    assert!(checked.succeeds().stdout.contains(clean), "{checked:?}");
    inside("music", &["run", "--fabric", "tcp", file]).fails_with(1, ABSENT);
}
