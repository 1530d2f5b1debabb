//! What is wrong with files: each mistake is named where it stands, with what to write instead.

mod common;

use music_core::Job;

use common::with_apps;

/// The findings of a file that has no meaning, one a line.
#[track_caller]
fn wrong(text: &str) -> String {
    let findings = Job::parse("f", text).expect_err("the file has a meaning");
    assert!(findings.errors().count() > 0);
    findings.to_string()
}

/// Fails unless the file has exactly this error.
#[track_caller]
fn says(text: &str, expected: &str) {
    assert_eq!(wrong(text), expected);
}

#[test]
fn an_unknown_application_is_named_with_those_there_are() {
    says(
        "np=1\nbinary=x\n[sender]\n[receiver]\nsendr.out -> receiver.in [1]",
        "f:5:1: there is no application sendr: did you mean sender? the file has sender, receiver",
    );
    says(
        "np=1\nbinary=x\n[A]\nA.out -> cortex.in",
        "f:4:10: there is no application cortex: the file has A",
    );
}

#[test]
fn a_wrong_arrow_is_seen() {
    for arrow in ["-", "=>", ">", "--", "- >", "=", "\u{2192}"] {
        let text = with_apps(&format!("A.out {arrow} B.in [10]"));
        assert_eq!(
            wrong(&text),
            "f:6:1: this looks like a connection with the wrong arrow: write A.out -> B.in [width]",
            "{arrow}"
        );
    }
    for text in [
        "A.out --> B.in",
        "A.out <-> B.in",
        "A.out ->> B.in",
        "A.o->B.i->C.k",
    ] {
        assert!(
            wrong(&with_apps(text)).contains("is not one of -> and <-"),
            "{text}"
        );
    }
    for text in ["-> B.in", "A.out ->", "A.out -> [3]", "A.out -> # B.in"] {
        assert!(
            wrong(&with_apps(text)).contains("one side of the arrow is empty"),
            "{text}"
        );
    }
    for text in ["A. -> B.in", ".out -> B.in", "A.out -> B."] {
        assert!(
            wrong(&with_apps(text)).contains("lacks a name beside its dot"),
            "{text}"
        );
    }
    assert!(wrong(&with_apps("A.out -> B.in junk")).contains("\"in junk\" is no port name"));
}

#[test]
fn ports_are_used_one_way_and_inputs_once() {
    says(
        &with_apps("A.o -> A.i [1]"),
        "f:6:1: A is connected to itself: connect two different applications",
    );
    says(
        &with_apps("A.o -> B.i [1]\n# x\nA.o -> B.i [1]"),
        "f:8:1: the connection A.o -> B.i is there already in line 6: remove one of them",
    );
    says(
        &with_apps("A.o -> B.i [1]\nC.o -> B.i [1]"),
        "f:7:1: the input B.i has two sources: A.o in line 6 and C.o here: give each source an \
         input port of its own",
    );
    says(
        &with_apps("A.o -> B.x [1]\nB.x -> C.i [1]"),
        "f:7:1: the port B.x is used as output and as input: in line 6 it is an input: give the \
         two directions different port names",
    );
    assert!(wrong(&with_apps("B.x -> C.i\nA.o -> B.x")).contains("in line 6 it is an output"));
}

#[test]
fn an_application_must_be_said_where_none_encloses() {
    says(
        "np=1\nbinary=x\no -> B.i\nA.o -> i\n[A]\n[B]\n",
        "f:3:1: which application the sender port o belongs to is not said: write APPLICATION.o\n\
         f:4:8: which application the receiver port i belongs to is not said: write APPLICATION.i",
    );
}

#[test]
fn numbers_of_processes_must_be_numbers() {
    says(
        "[A]\nbinary=x",
        "f:1:1: the application A has no np: add np=1 to [A], or above the first section for all",
    );
    says(
        "np=1\n\n[A]\n",
        "f:3:1: the application A has no binary: add binary=PROGRAM to [A], or above the first \
         section for all",
    );
    for value in ["two", "-1", "1.5", "1 2", "", "0x2", "99999999999999999999"] {
        let text = wrong(&format!("binary=x\n[A]\nnp={value}\n"));
        let expected =
            format!("f:3:4: np is \"{value}\", which is not a whole number of processes: ");
        assert!(text.starts_with(&expected), "{text}");
    }
    // Said once, however many inherit it.
    assert_eq!(wrong("binary=x\nnp=two\n[A]\n[B]\n").lines().count(), 1);
    assert!(
        wrong("binary=x\nnp=2147483647\n[A]\n[B]\n")
            .contains("more processes than can be numbered")
    );
    assert!(wrong("np=0\nbinary=x\n[A]").contains("no application has any processes"));
}

#[test]
fn widths_must_be_widths() {
    for (bracket, expected) in [
        (
            "[-3]",
            "f:6:13: the width -3 is not a whole number from 0 up: ",
        ),
        (
            "[3*2]",
            "f:6:13: the width 3*2 is not a whole number from 0 up: ",
        ),
        (
            "[abc]",
            "f:6:13: the width abc is not a whole number from 0 up: ",
        ),
        (
            "[ 10x]",
            "f:6:14: the width 10x is not a whole number from 0 up: ",
        ),
        (
            "[1 0]",
            "f:6:13: there are several numbers in the width 1 0: write one number",
        ),
        (
            "[99999999999999999999999]",
            "f:6:13: the width 99999999999999999999999 is more than",
        ),
        (
            "[4294967297]",
            "f:6:13: the width 4294967297 is more than there are ids",
        ),
        (
            "[collective]",
            "f:6:13: the bracket starts with the word collective where the width",
        ),
        (
            "[10, foo]",
            "f:6:17: unknown communication foo: write point-to-point or collective",
        ),
        (
            "[3, tree]",
            "f:6:16: tree stands where the communication belongs: ",
        ),
        (
            "[3, ]",
            "f:6:16: the communication is missing behind the comma: ",
        ),
        (
            "[10, collective, hash]",
            "f:6:29: unknown processing hash: write tree or table",
        ),
        (
            "[10, collective,]",
            "f:6:28: the processing is missing behind the comma: ",
        ),
        (
            "[1, collective, tree, x]",
            "f:6:34: a bracket has at most three parts: ",
        ),
        (
            "[10",
            "f:6:12: the bracket behind this connection is not closed: end it with ], as in [10]",
        ),
        (
            "[10 # ]",
            "f:6:12: the bracket behind this connection is not closed: ",
        ),
        ("[1] [2]", "f:6:16: a second bracket behind a connection: "),
    ] {
        let text = wrong(&with_apps(&format!("A.o -> B.i {bracket}")));
        assert!(text.starts_with(expected), "{bracket}: {text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}

#[test]
fn overrides_must_be_numbers() {
    for (text, expected) in [
        (
            "latency=fast",
            "f:6:24: the latency \"fast\" is no number of seconds: ",
        ),
        (
            "latency=-1",
            "f:6:24: the latency \"-1\" is no number of seconds: ",
        ),
        (
            "latency=nan",
            "f:6:24: the latency \"nan\" is no number of seconds: ",
        ),
        (
            "latency=",
            "f:6:24: the latency \"\" is no number of seconds: ",
        ),
        (
            "maxbuffered=0",
            "f:6:28: maxbuffered \"0\" is no number of ticks: ",
        ),
        (
            "maxbuffered=1.5",
            "f:6:28: maxbuffered \"1.5\" is no number of ticks: ",
        ),
    ] {
        let found = wrong(&with_apps(&format!("A.o -> B.i [1] {text}")));
        assert!(found.starts_with(expected), "{text}: {found}");
    }
}

#[test]
fn what_is_opened_must_be_closed() {
    says(
        "np=1\nbinary=x\n[A\nk=1",
        "f:3:1: the section [A is not closed: end its name with ]",
    );
    says(
        "np=1\nbinary=x\n[A] x\n",
        "f:3:5: text after the closing ] of a section: move it to a line of its own or put # \
         before it",
    );
    says(
        "np=1\nbinary=x\n[A]\nargs=\"a b\n",
        "f:4:6: the quoted value of args never ends: close it with \"",
    );
    says(
        "np=1\nbinary=x\n[A]\nargs=\"a b\" c\n",
        "f:4:12: text after the quoted value of args: quote the whole value, with \\\" for quotes \
         inside, or put # before the text",
    );
    assert!(wrong("np=1\nbinary=x\n[A]\nargs=a 'b c\n").starts_with(
        "f:4:6: the args hold a ' that is never closed: close it, or write \\\\ before a quote"
    ));
    assert!(wrong("np=1\nbinary=x\n[]\n[A]").starts_with("f:3:1: a section without a name: "));
}

#[test]
fn times_must_be_times() {
    for (text, expected) in [
        (
            "stoptime=abc",
            "f:4:10: stoptime is \"abc\", which is not a number of seconds from 0 up: ",
        ),
        ("stoptime=-1", "f:4:10: stoptime is \"-1\", which is not"),
        ("stoptime=inf", "f:4:10: stoptime is \"inf\", which is not"),
        (
            "timebase=abc",
            "f:4:10: timebase is \"abc\", which is not a number: ",
        ),
        (
            "timebase=0",
            "f:4:10: the timebase must be a positive number of seconds, not 0.0: ",
        ),
    ] {
        let found = wrong(&format!("np=1\nbinary=x\n[A]\n{text}\n"));
        assert!(found.starts_with(expected), "{text}: {found}");
    }
    says(
        "np=1\nbinary=x\ntimebase=1e-9\n[A]\n[B]\ntimebase=1e-6",
        "f:6:10: B has the timebase 1e-6 s, but A has 1e-9 s: set timebase once, above the first \
         section",
    );
}

/// What would overflow the count of the timebase is refused where it stands; the last that does not
/// is taken.
#[test]
fn times_must_be_countable_in_the_timebase() {
    let limit = 1e-9 * 2_f64.powi(62);
    for (seconds, timebase) in [
        ("1e300", "1e-9"),
        ("1.7976931348623157e308", "1e-9"),
        ("4611686018.4273880", "1e-9"),
        ("1", "1e-300"),
    ] {
        let refused = format!("cannot be counted in units of {timebase} s: write a shorter time");

        let found = wrong(&format!(
            "np=1\nbinary=x\ntimebase={timebase}\n[A]\nstoptime={seconds}"
        ));
        assert!(
            found.starts_with("f:5:10: ") && found.contains(&refused),
            "{found}"
        );
        let text = with_apps(&format!("A.o -> B.i [1] latency={seconds}"));
        let found = wrong(&format!("timebase={timebase}\n{text}"));
        assert!(
            found.starts_with("f:7:24: ") && found.contains(&refused),
            "{found}"
        );
        assert!(found.len() < 200, "{found}");
    }
    for seconds in [limit.next_down(), f64::MIN_POSITIVE, 0.0] {
        let connection = format!("A.o -> B.i [1] latency={seconds:e}");
        let text = format!("stoptime={seconds:e}\n{}", with_apps(&connection));

        assert!(Job::parse("f", text).is_ok(), "{seconds:e}");
    }
}

#[test]
fn what_is_no_text_is_refused_where_it_stops_being_any() {
    for (bytes, expected) in [
        (
            &b"np=1\n[A]\nargs=a\0b\n"[..],
            "f:3:7: a NUL character, which no program can be given",
        ),
        (b"\0", "f:1:1: a NUL character"),
        (b"np=\xc3\xa9\0", "f:1:5: a NUL character"),
        (b"\xff\xfe[\0A\0]\0", "f:1:1: the byte 0xff is not UTF-8"),
        (b"np=1\n[\xc3\xa9\xe9]", "f:2:3: the byte 0xe9 is not UTF-8"),
        (b"# \xc3", "f:1:3: the byte 0xc3 is not UTF-8"),
        (b"\x7fELF\x02\0\xff", "f:1:6: a NUL character"),
    ] {
        let found = Job::parse("f", bytes).unwrap_err().to_string();

        assert!(found.starts_with(expected), "{found}");
        assert!(found.ends_with(": save the file as UTF-8 text"), "{found}");
        assert_eq!(found.lines().count(), 1);
    }
}

#[test]
fn an_empty_file_says_what_belongs_into_it() {
    for text in ["", "\n\n", "# nothing\n", "\u{feff}"] {
        says(
            text,
            "f:1:1: the file names no application: add a section [NAME] with np= and binary= for \
             each program",
        );
    }
}

#[test]
fn all_mistakes_of_a_file_are_reported_in_order() {
    let text =
        "stoptime=x\n[A]\nnp=one\n[B]\nnp=1\nbinary=b\nA.o - B.i [1]\nA.o -> B.i [x]\nZ.o -> B.j\n";

    let found = wrong(text);

    let places: Vec<_> = found
        .lines()
        .map(|line| line.split(": ").next().unwrap())
        .collect();
    assert_eq!(
        places,
        ["f:1:10", "f:2:1", "f:3:4", "f:7:1", "f:8:13", "f:9:1"],
        "{found}"
    );
}

#[test]
fn columns_count_characters() {
    assert!(wrong(&with_apps("\u{e9}\u{e9}=1\nA.\u{e9} -> B.\u{e9} [x]")).starts_with("f:7:13: "));
}
