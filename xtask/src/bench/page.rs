//! The parts of `docs/benchmarks.md` that are measured: between two marks, everything else is kept.

use std::fs;
use std::process::Command;

use super::Bench;
use crate::process;

/// Replaces what stands between `<!-- NAME -->` and `<!-- /NAME -->`.
pub(super) fn replace(bench: &Bench<'_>, name: &str, content: &str) -> Result<(), String> {
    println!("\n{content}");
    if bench.options.keep_docs {
        return Ok(());
    }
    let path = bench.workspace.root().join("docs/benchmarks.md");
    let fail = |error| format!("{}: {error}", path.display());
    let page = fs::read_to_string(&path).map_err(fail)?;
    let page = replaced(&page, name, content).ok_or_else(|| {
        format!(
            "{}: no `<!-- {name} -->` ... `<!-- /{name} -->`",
            path.display()
        )
    })?;
    fs::write(&path, page).map_err(fail)
}

fn replaced(page: &str, name: &str, content: &str) -> Option<String> {
    let (open, close) = (format!("<!-- {name} -->"), format!("<!-- /{name} -->"));
    let start = page.find(&open)? + open.len();
    let end = start + page[start..].find(&close)?;
    let (before, after) = (&page[..start], &page[end..]);
    Some(format!("{before}\n{}\n{after}", content.trim_end()))
}

/// When, where and of which commit: the line under each table.
pub(super) fn provenance(bench: &Bench<'_>, sample: Option<&serde_json::Value>) -> String {
    let text = |field: &str| sample.map_or("unknown", |line| line[field].as_str().unwrap_or("?"));
    let date = process::output(Command::new("date").args(["-u", "+%F"])).unwrap_or_default();
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or("?");
    format!(
        "Taken {} on {} at commit {}, {} processors, load {load} at the end.",
        date.trim(),
        text("host"),
        text("commit"),
        bench.processors
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_marked_part_changes() {
        let page = "a\n<!-- x -->\nold\n<!-- /x -->\nb\n";

        let once = replaced(page, "x", "new\n").unwrap();

        assert_eq!(once, "a\n<!-- x -->\nnew\n<!-- /x -->\nb\n");
        assert_eq!(replaced(&once, "x", "new"), Some(once.clone()));
        assert_eq!(replaced(page, "y", "new"), None);
    }
}
