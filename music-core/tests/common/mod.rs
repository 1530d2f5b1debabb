//! What the tests of the file format share.

/// Three applications above whatever follows.
pub(crate) fn with_apps(text: &str) -> String {
    format!("np=1\nbinary=x\n[A]\n[B]\n[C]\n{text}\n")
}
