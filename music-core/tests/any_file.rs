//! Whatever bytes a file has: an answer, no panic, in time that grows with its length only.

use music_core::Job;
use proptest::prelude::*;

/// Parses, and looks at all that comes out.
fn survive(bytes: impl AsRef<[u8]>) {
    let bytes = bytes.as_ref();
    match Job::parse("f", bytes) {
        Ok(job) => {
            for (index, application) in job.applications.iter().enumerate() {
                assert!(application.processes > 0);
                let _ = job.music_config(index);
                let _ = music_core::plan::describe(&job);
            }
            assert!(job.warnings.len() <= 101);
        }
        Err(findings) => {
            assert!(findings.errors().count() > 0);
            assert!(findings.0.len() <= 102);
            let lines = bytes.split(|&byte| byte == b'\n').count();
            let lines = u32::try_from(lines).unwrap();
            for finding in &findings.0 {
                let line = finding.to_string();
                assert!(!line.contains('\n') && line.len() < 2000, "{line}");
                assert!((1..=lines).contains(&finding.line), "{line}");
                assert!(finding.column > 0, "{line}");
            }
        }
    }
}

/// Pieces that the format gives a meaning to.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "\n",
            "\n",
            "\r\n",
            " ",
            "\t",
            "[",
            "]",
            "[A]",
            "[B]",
            "->",
            "<-",
            "=",
            "=>",
            "-",
            ">",
            "#",
            "%",
            "*",
            "/*",
            "*/",
            "//",
            "\\",
            "\"",
            "'",
            ",",
            ".",
            "A.o",
            "B.i",
            "A.o->B.i",
            "[3]",
            "[3,collective,tree]",
            "np=1",
            "binary=x",
            "latency=",
            "maxbuffered=2",
            "np=0",
            "stoptime=1",
            "timebase=1e-9",
            "args=",
            "\u{feff}",
            "\u{e9}",
            "\u{2192}",
            "\0",
            "10",
        ])
        .prop_map(str::to_owned),
        ".{0,6}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_of_pieces_has_an_answer(pieces in prop::collection::vec(piece(), 0..60)) {
        survive(pieces.concat());
    }

    #[test]
    fn any_text_has_an_answer(text in "\\PC*") {
        survive(text);
    }

    #[test]
    fn any_bytes_have_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        survive(bytes);
    }

    #[test]
    fn any_change_of_a_good_file_has_an_answer(
        at in 0_usize..400,
        with in piece(),
        cut in 0_usize..9,
    ) {
        let good = "stoptime=1.5\nnp=1\n/* c\n * d\n */\n\
                    [A]\n  binary=\"./a\" # x\n  args=-x 'y z' \\# \n\
                    [B]\n  np=2\n  binary=b\n\x20 \
                    A.o -> B.i [10, collective, tree] latency=1 A.p->B.j\n\
                    B.k<-A.q[3]\n  angular.z=2\n% end\n";
        let start = at.min(good.len());
        let end = (start + cut).min(good.len());
        survive(format!("{}{with}{}", &good[..start], &good[end..]));
    }
}

/// The examples that users start from.
const EXAMPLES: [&str; 5] = [
    include_str!("../../examples/chain.music"),
    include_str!("../../examples/fork.music"),
    include_str!("../../examples/loop.music"),
    include_str!("../../examples/recorded.music"),
    include_str!("../../examples/two-populations.music"),
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn any_changes_of_an_example_have_an_answer(
        example in prop::sample::select(EXAMPLES.to_vec()),
        changes in prop::collection::vec((any::<prop::sample::Index>(), value(), 0_usize..9), 1..6),
    ) {
        let mut bytes = example.as_bytes().to_vec();
        for (at, with, cut) in changes {
            let start = at.index(bytes.len() + 1);
            let end = (start + cut).min(bytes.len());
            bytes.splice(start..end, with);
        }
        survive(bytes);
    }
}

/// Pieces, numbers at every limit, and bytes that are no text.
fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        piece().prop_map(String::into_bytes),
        any::<f64>().prop_map(|number| number.to_string().into_bytes()),
        any::<i64>().prop_map(|number| number.to_string().into_bytes()),
        prop::sample::select(vec![
            "1e300",
            "nan",
            "-inf",
            "1e-320",
            "4611686018.427388",
            "2147483648"
        ])
        .prop_map(|number| number.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..3),
    ]
}

#[test]
fn a_megabyte_of_anything_is_read_in_one_pass() {
    // A reader that is quadratic anywhere would be here for hours.
    for unit in [
        "a.o->b.i[1] ",
        "a.o->b.i ",
        "A.o -> B.i [1]\n",
        "[A]\n",
        "[",
        "[A",
        "]",
        "k=1\n",
        "k=1 ",
        "k=\"\\\"",
        "\"",
        "k=\"",
        "/*",
        "/*\n",
        "*/",
        "//\n",
        "- ",
        "A.b-",
        "A.b - ",
        "A.o-B.i\n",
        "<-",
        "->",
        "->[",
        "->[,",
        "=",
        "#",
        "%\n",
        "\\",
        "\\\n",
        "\n",
        "\r",
        "\r\n",
        "x",
        "x.",
        "'",
        "latency=1 ",
        "a->b latency=1 ",
        "\u{e9}",
        "\0",
        "[x]np=1\n",
        "q.o->A.i\n",
    ] {
        let body = unit.repeat(1_000_000 / unit.len());
        survive(&body);
        survive(format!("np=1\nbinary=x\n[A]\n[B]\n{body}"));
    }
}

#[test]
fn a_megabyte_of_applications_and_connections_is_read() {
    let mut text = String::from("np=1\nbinary=x\n");
    for index in 0..20_000 {
        text += &format!("[a{index}]\nk=v\n");
    }
    for index in 1..20_000 {
        text += &format!("a{}.out -> a{index}.in [10]\n", index - 1);
    }

    let job = Job::parse("f", &text).unwrap();

    assert_eq!(
        (job.applications.len(), job.connections.len()),
        (20_000, 19_999)
    );
}
