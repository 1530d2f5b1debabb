//! Where the workspace is and what `cargo metadata` says about it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::process;

/// The checkout that this program was built from.
pub(crate) struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// Finds the checkout: the parent of this crate, as cargo tells it at run time.
    pub(crate) fn find() -> Result<Self, String> {
        let crate_dir = std::env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = crate_dir
            .parent()
            .ok_or("the xtask crate has no parent folder")?;
        Ok(Self { root: root.into() })
    }

    /// The top folder of the checkout.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Where build results go.
    pub(crate) fn target(&self) -> PathBuf {
        std::env::var_os("CARGO_TARGET_DIR")
            .map_or_else(|| self.root.join("target"), |dir| self.root.join(dir))
    }

    /// The cargo that runs this program, in the top folder.
    pub(crate) fn cargo(&self, args: &[&str]) -> Command {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
        command.current_dir(&self.root).args(args);
        command
    }

    /// Every package that any member needs, and who needs whom.
    pub(crate) fn metadata(&self) -> Result<Metadata, String> {
        let text = process::output(&mut self.cargo(&["metadata", "--format-version", "1"]))?;
        Metadata::parse(&text)
    }
}

/// The part of `cargo metadata` that the checks read.
#[derive(Debug, Default)]
pub(crate) struct Metadata {
    /// By package id.
    pub(crate) packages: BTreeMap<String, Package>,
    /// Ids of the workspace's own packages.
    pub(crate) members: Vec<String>,
}

/// One package of the dependency graph.
#[derive(Debug, Default)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) licence: String,
    pub(crate) manifest: PathBuf,
    /// Roots of the library and the binaries.
    pub(crate) roots: Vec<PathBuf>,
    /// Ids of what it is built with: normal and build dependencies, not those of its tests.
    pub(crate) needs: Vec<String>,
}

impl Metadata {
    fn parse(text: &str) -> Result<Self, String> {
        let json: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let mut metadata = Self {
            members: list(&json["workspace_members"]).map(text_of).collect(),
            ..Self::default()
        };
        for package in list(&json["packages"]) {
            metadata
                .packages
                .insert(text_of(&package["id"]), Package::parse(package));
        }
        for node in list(&json["resolve"]["nodes"]) {
            if let Some(package) = metadata.packages.get_mut(&text_of(&node["id"])) {
                package.needs = list(&node["deps"])
                    .filter(|dep| is_built_with(dep))
                    .map(|dep| text_of(&dep["pkg"]))
                    .collect();
            }
        }
        Ok(metadata)
    }

    /// The workspace's own packages.
    pub(crate) fn own(&self) -> impl Iterator<Item = &Package> {
        self.members.iter().filter_map(|id| self.packages.get(id))
    }

    /// Names of all packages that the named member is built with, itself left out.
    pub(crate) fn closure(&self, name: &str) -> Vec<&str> {
        let start = self
            .members
            .iter()
            .find(|id| self.packages[*id].name == name);
        let mut open: Vec<&String> = start.into_iter().collect();
        let mut seen: Vec<&String> = open.clone();
        while let Some(package) = open.pop().and_then(|id| self.packages.get(id)) {
            for id in &package.needs {
                if !seen.contains(&id) {
                    seen.push(id);
                    open.push(id);
                }
            }
        }
        let others = seen.into_iter().skip(1);
        others
            .filter_map(|id| Some(self.packages.get(id)?.name.as_str()))
            .collect()
    }
}

impl Package {
    fn parse(json: &Value) -> Self {
        let roots = list(&json["targets"]).filter(|target| {
            list(&target["kind"]).any(|kind| matches!(kind.as_str(), Some("lib" | "bin")))
        });
        Self {
            name: text_of(&json["name"]),
            licence: text_of(&json["license"]),
            manifest: text_of(&json["manifest_path"]).into(),
            roots: roots
                .map(|target| text_of(&target["src_path"]).into())
                .collect(),
            needs: Vec::new(),
        }
    }
}

fn list(json: &Value) -> impl Iterator<Item = &Value> {
    json.as_array().into_iter().flatten()
}

fn text_of(json: &Value) -> String {
    json.as_str().unwrap_or_default().into()
}

fn is_built_with(dep: &Value) -> bool {
    list(&dep["dep_kinds"]).any(|kind| kind["kind"].as_str() != Some("dev"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRAPH: &str = r#"{
        "workspace_members": ["a 1", "b 1"],
        "packages": [
            {"id": "a 1", "name": "a", "license": "MIT", "manifest_path": "/w/a/Cargo.toml",
             "targets": [{"kind": ["lib"], "src_path": "/w/a/src/lib.rs"},
                         {"kind": ["test"], "src_path": "/w/a/tests/t.rs"}]},
            {"id": "b 1", "name": "b", "license": "MIT", "manifest_path": "/w/b/Cargo.toml",
             "targets": []},
            {"id": "c 9", "name": "c", "license": "ISC", "manifest_path": "/c", "targets": []},
            {"id": "t 9", "name": "t", "license": null, "manifest_path": "/t", "targets": []}],
        "resolve": {"nodes": [
            {"id": "a 1", "deps": [{"pkg": "b 1", "dep_kinds": [{"kind": null}]},
                                   {"pkg": "t 9", "dep_kinds": [{"kind": "dev"}]}]},
            {"id": "b 1", "deps": [{"pkg": "c 9", "dep_kinds": [{"kind": "build"}]}]},
            {"id": "c 9", "deps": []}]}}"#;

    #[test]
    fn the_closure_holds_normal_and_build_dependencies_but_not_those_of_tests() {
        let metadata = Metadata::parse(GRAPH).unwrap();

        assert_eq!(metadata.closure("a"), ["b", "c"]);
        assert_eq!(metadata.closure("b"), ["c"]);
    }

    #[test]
    fn only_libraries_and_binaries_are_roots() {
        let metadata = Metadata::parse(GRAPH).unwrap();

        assert_eq!(
            metadata.packages["a 1"].roots,
            [PathBuf::from("/w/a/src/lib.rs")]
        );
        assert_eq!(metadata.packages["t 9"].licence, "");
    }
}
