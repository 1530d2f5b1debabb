//! What the inner crates are built with, and under which licences.

use crate::workspace::{Metadata, Package};

use super::Violation;

/// Each inner crate and the members that it may be built with.
const LAYERS: &[(&str, &[&str])] = &[
    ("transport-core", &[]),
    ("barrier", &["transport-core"]),
    ("collectives", &["transport-core", "barrier"]),
    ("music-core", &["transport-core", "barrier", "collectives"]),
    ("transport-sim", &["transport-core"]),
];

/// What any of them may use besides: the error derive and what it is made of.
const DERIVE: &[&str] = &[
    "thiserror",
    "thiserror-impl",
    "proc-macro2",
    "quote",
    "syn",
    "unicode-ident",
];

/// Licences that go with ours.
const LICENCES: &[&str] = &[
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
    "0BSD",
];

/// Dependencies that leave their layer, and packages whose licence does not fit.
pub(super) fn check(metadata: &Metadata) -> Vec<Violation> {
    let mut found = Vec::new();
    for (name, members) in LAYERS {
        let foreign = metadata
            .closure(name)
            .into_iter()
            .filter(|package| !members.contains(package) && !DERIVE.contains(package))
            .filter(|package| *name != "transport-sim" || !is_random(package));
        found.extend(foreign.map(|package| {
            let what = format!(
                "layer: {name} is built with `{package}`; \
                 it may use {members:?} and thiserror only"
            );
            Violation::new(&format!("{name}/Cargo.toml"), 1, what)
        }));
    }
    let unfit = metadata
        .packages
        .values()
        .filter(|package| !is_allowed(&package.licence));
    found.extend(unfit.map(licence));
    found
}

/// The simulator also draws seeded noise.
fn is_random(package: &str) -> bool {
    matches!(package, "rand_core" | "rand_xoshiro")
}

fn licence(package: &Package) -> Violation {
    let what = format!(
        "licence of {}: `{}` is not on the list; replace it, or add the licence to \
         xtask/src/tidy/graph.rs if it goes with MIT OR Apache-2.0",
        package.name, package.licence
    );
    Violation::new("Cargo.lock", 1, what)
}

/// One allowed licence of an `OR`, every one of an `AND`; `/` is an old way to write `OR`.
fn is_allowed(expression: &str) -> bool {
    let expression = expression.replace('/', " OR ");
    let flat: String = expression
        .chars()
        .filter(|c| !matches!(c, '(' | ')'))
        .collect();
    if !expression.contains('(') {
        return flat
            .split(" OR ")
            .any(|all| all.split(" AND ").all(is_listed));
    }
    // With parentheses the precedence is not ours to guess: every licence named must fit, except
    // that one of `(A OR B)` will do.
    expression.split(" AND ").all(|part| {
        let part = part.trim_matches(|c| matches!(c, '(' | ')'));
        part.split(" OR ").any(is_listed)
    })
}

fn is_listed(licence: &str) -> bool {
    LICENCES.contains(&licence.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, licence: &str, needs: &[&str]) -> (String, Package) {
        let package = Package {
            name: name.into(),
            licence: licence.into(),
            needs: needs.iter().map(ToString::to_string).collect(),
            ..Package::default()
        };
        (name.into(), package)
    }

    #[test]
    fn a_transport_under_the_barrier_is_found_through_any_number_of_steps() {
        let metadata = Metadata {
            packages: [
                package("barrier", "MIT", &["thiserror"]),
                package("thiserror", "MIT", &["rustix"]),
                package("rustix", "MIT", &[]),
            ]
            .into(),
            members: vec!["barrier".into()],
        };

        let found = check(&metadata);

        assert_eq!(found.len(), 1);
        assert!(found[0].what.contains("barrier is built with `rustix`"));
    }

    #[test]
    fn licences_are_read_as_expressions() {
        for good in [
            "MIT",
            "MIT OR GPL-3.0",
            "MIT/Apache-2.0",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT",
        ] {
            assert!(is_allowed(good), "{good}");
        }
        for bad in [
            "",
            "GPL-3.0",
            "MIT AND GPL-2.0",
            "(MIT OR ISC) AND LGPL-2.1",
        ] {
            assert!(!is_allowed(bad), "{bad}");
        }
    }
}
