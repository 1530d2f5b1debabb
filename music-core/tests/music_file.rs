//! What files say, and what is wrong with them.

use music_core::{Communication, Job, Severity};

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

#[track_caller]
fn good(text: &str) -> Job {
    Job::parse("f", text).unwrap_or_else(|findings| panic!("{findings}"))
}

/// Two applications above whatever follows.
fn with_apps(text: &str) -> String {
    format!("np=1\nbinary=x\n[A]\n[B]\n[C]\n{text}\n")
}

/// Each connection as `from -> to width`.
fn links(job: &Job) -> Vec<String> {
    let width = |width: Option<u64>| width.map_or("-".into(), |width| width.to_string());
    job.connections
        .iter()
        .map(|c| format!("{} {}", job.connection_name(c), width(c.width)))
        .collect()
}

#[track_caller]
fn connects(text: &str, expected: &[&str]) -> Job {
    let job = good(&with_apps(text));
    assert_eq!(links(&job), expected, "{text}");
    job
}

fn warnings(job: &Job) -> Vec<String> {
    assert!(
        job.warnings
            .iter()
            .all(|warning| warning.severity == Severity::Warning)
    );
    job.warnings.iter().map(ToString::to_string).collect()
}

#[test]
fn the_usual_file_is_understood() {
    let job = good(
        "# two populations\nstoptime=1000.\nnp=2\n\n[sender]\n  binary = ./a.py\n  args=-t 0.01 'x y'\n\
         [receiver]\n  np=3\n  binary=b\n  wd=/tmp\n  sender.out -> receiver.in [10, collective, table]\n",
    );

    let [sender, receiver] = &job.applications[..] else {
        panic!("two applications")
    };
    assert_eq!((sender.processes, sender.ranks()), (2, 0..2));
    assert_eq!((receiver.processes, receiver.ranks()), (3, 2..5));
    assert_eq!(sender.binary, "./a.py");
    assert_eq!(sender.arguments, ["-t", "0.01", "x y"]);
    assert_eq!(receiver.working_directory.as_deref(), Some("/tmp"));
    assert_eq!(job.stop_time, Some(1000.0));
    assert_eq!(job.timebase.seconds(), 1e-9);
    assert_eq!(job.connections[0].communication, Communication::Allgather);
    assert_eq!(job.ranks(), 5);
    assert_eq!(
        (job.application_of(1), job.application_of(2)),
        (Some(0), Some(1))
    );
    assert_eq!(job.application_of(5), None);
    assert!(job.warnings.is_empty());
}

#[test]
fn connections_may_be_written_in_every_way_seen_in_the_wild() {
    connects("A.out -> B.in [10]", &["A.out -> B.in 10"]);
    connects("A.out->B.in[2]", &["A.out -> B.in 2"]);
    connects("A.out -> B.in [ 3 ]", &["A.out -> B.in 3"]);
    connects("A.out -> B.in", &["A.out -> B.in -"]);
    connects("A.out -> B.in []", &["A.out -> B.in -"]);
    connects("A.out -> B.in [0]", &["A.out -> B.in 0"]);
    connects("A.out -> B.in [10000000]", &["A.out -> B.in 10000000"]);
    connects("B.in<-A.out[3]", &["A.out -> B.in 3"]);
    connects("A.o->B.i[3] A.p->B.j[4]", &["A.o -> B.i 3", "A.p -> B.j 4"]);
    connects("A.o->B.i A.p -> B.j", &["A.o -> B.i -", "A.p -> B.j -"]);
    connects("A.o -> C.i [1] # the rest", &["A.o -> C.i 1"]);
    connects("A.o -> B.i# the rest", &["A.o -> B.i -"]);
    connects("o -> B.i [1]", &["C.o -> B.i 1"]);
    connects("A.o -> i [1]", &["A.o -> C.i 1"]);
    connects("A.o.x -> B.i.y.z [1]", &["A.o.x -> B.i.y.z 1"]);
    connects("\tA.o-1 -> B.i-2 [1]", &["A.o-1 -> B.i-2 1"]);
    connects(
        "[D e]\nD e.o -> A.i [1]\nB.o -> D e.j [1]",
        &["D e.o -> A.i 1", "B.o -> D e.j 1"],
    );
}

#[test]
fn communication_and_processing_may_be_given_in_any_case() {
    for (text, expected) in [
        ("[1]", Communication::Pairwise),
        ("[1, point-to-point]", Communication::Pairwise),
        ("[1,Point-To-Point,TREE]", Communication::Pairwise),
        ("[1 , pairwise , table ]", Communication::Pairwise),
        ("[,collective]", Communication::Allgather),
        ("[ 7 , COLLECTIVE,tree]", Communication::Allgather),
        ("[7,allgather]", Communication::Allgather),
        ("[7, auto]", Communication::Auto),
    ] {
        let job = good(&with_apps(&format!("A.o -> B.i {text}")));
        assert_eq!(job.connections[0].communication, expected, "{text}");
    }
}

#[test]
fn what_a_connection_overrides_stands_behind_it() {
    for text in [
        "A.o -> B.i [10, point-to-point, tree] latency=0.002 maxbuffered=3",
        "A.o -> B.i [] maxBuffered = 3  LATENCY = 2e-3 # both",
        "A.o -> B.i latency=0.002 maxbuffered=3",
        "A.o -> B.i[4]latency=0.002 maxbuffered=3#both",
    ] {
        let job = good(&with_apps(&format!("{text}\nk=1")));
        assert_eq!(job.connections[0].acceptable_latency, Some(0.002), "{text}");
        assert_eq!(job.connections[0].max_buffered, Some(3), "{text}");
        assert_eq!(
            job.applications[2].variables.string("latency"),
            None,
            "{text}"
        );
        assert_eq!(
            job.applications[2].variables.string("k"),
            Some("1"),
            "{text}"
        );
        assert!(job.warnings.is_empty(), "{text}");
    }
    let two = good(&with_apps(
        "A.o -> B.i [1] latency=1 A.p -> B.j [1] maxbuffered=2",
    ));
    assert_eq!(
        (
            two.connections[0].acceptable_latency,
            two.connections[0].max_buffered
        ),
        (Some(1.0), None)
    );
    assert_eq!(
        (
            two.connections[1].acceptable_latency,
            two.connections[1].max_buffered
        ),
        (None, Some(2))
    );
}

#[test]
fn comments_of_every_kind_are_skipped() {
    let header = "% NEST; with <urls> http://x.org/a->b and = signs\n/*\n * np=two\n * A.o -> Z.i\n */\n\
                  * a lone star\n# hash\n";
    let job = good(&format!(
        "{header}np=1 # one\nbinary=x\n/* [Z] */ [A] # first\n[B]\nA.o -> B.i [1]"
    ));

    assert_eq!(links(&job), ["A.o -> B.i 1"]);
    assert_eq!(job.applications.len(), 2);
    assert!(job.warnings.is_empty(), "{:?}", warnings(&job));
}

#[test]
fn ends_of_lines_and_the_byte_order_mark_do_not_matter() {
    let text = with_apps("A.o -> B.i [1]\nquoted=\"a\nb\"\nlast=z");
    let plain = good(&text);

    for variant in [
        format!("\u{feff}{text}"),
        text.replace('\n', "\r\n"),
        text.trim_end().to_owned(),
        format!("{text}   "),
        text.replace('\n', "\n\n \t\n"),
    ] {
        let job = good(&variant);
        assert_eq!(links(&job), links(&plain));
        assert_eq!(job.applications[0].binary, "x");
        assert_eq!(job.applications[2].variables.string("last"), Some("z"));
    }
}

#[test]
fn values_keep_what_quotes_and_backslashes_keep() {
    let text = "np=1\nbinary=x\n[A]\n\
        a=--timestep 0.001 # comment\nb=\"with # and \\\" quote\" # comment\nc=it's \"in ner\"  \n\
        d=a\\#b\\\\c\ne=one\\\ntwo\nf=\ng=\"two\nlines\"\nh\\=i = j=k\nangular.z=0.5\n\u{fc}=\u{e9} \u{2192} x\n\
        i=>x\ntrail=x\\ \n";
    let job = good(text);
    let value = |key| job.applications[0].variables.string(key).unwrap();

    assert_eq!(value("a"), "--timestep 0.001");
    assert_eq!(value("b"), "with # and \" quote");
    assert_eq!(value("c"), "it's \"in ner\"");
    assert_eq!(value("d"), "a#b\\c");
    assert_eq!(value("e"), "one\ntwo");
    assert_eq!(value("f"), "");
    assert_eq!(value("g"), "two\nlines");
    assert_eq!(value("h=i"), "j=k");
    assert_eq!(value("angular.z"), "0.5");
    assert_eq!(value("\u{fc}"), "\u{e9} \u{2192} x");
    assert_eq!(value("i"), ">x");
    assert_eq!(value("trail"), "x ");
    assert!(job.warnings.is_empty(), "{:?}", warnings(&job));
}

#[test]
fn sections_inherit_what_they_do_not_set() {
    let job = good("np=2\nbinary=x\nk=top\n[A]\nk=own\n[B]\nnp=1\n[A]\nlate=1\n");

    let [a, b] = &job.applications[..] else {
        panic!("two applications")
    };
    assert_eq!((a.processes, b.processes), (2, 1));
    assert_eq!(
        (a.variables.string("k"), b.variables.string("k")),
        (Some("own"), Some("top"))
    );
    assert_eq!(a.variables.string("late"), Some("1"));
    let all: Vec<_> = b.variables.iter().collect();
    assert_eq!(all, [("np", "1"), ("binary", "x"), ("k", "top")]);
}

#[test]
fn lookups_have_types_and_name_what_is_not() {
    let job = good("np=1\nbinary=x\nrate=10.\nflag=true\n[A]\n count = 7\nbad=x1\n");
    let variables = &job.applications[0].variables;

    assert_eq!(variables.double("rate"), Ok(Some(10.0)));
    assert_eq!(variables.int("count"), Ok(Some(7)));
    assert_eq!(variables.bool("flag"), Ok(Some(true)));
    assert_eq!(variables.int("nothing"), Ok(None));
    let error = variables.int("bad").unwrap_err();
    assert_eq!(
        error.to_string(),
        "f:7:5: bad is \"x1\", which is not a whole number"
    );
    assert_eq!((error.key.as_str(), error.value.as_str()), ("bad", "x1"));
    let error = variables.bool("count").unwrap_err();
    assert_eq!(
        error.to_string(),
        "f:6:10: count is \"7\", which is not true or false"
    );
    assert_eq!(
        variables.int("rate").unwrap_err().to_string(),
        "f:3:6: rate is \"10.\", which is not a whole number"
    );
}

#[test]
fn what_may_not_be_meant_is_a_warning() {
    let job = good(
        "np=1\nbinary=x\nk=1\nk=2\n[A]\nstray words\n[B]\n[A]\nx=run#1.dat\n// slashes\n\
         A.o -> B.i [3] junk=4\nA.o -> B.j [4]\n[Z]\nnp=0\nA.z -> Z.i\n/* open\n",
    );

    assert_eq!(
        warnings(&job),
        [
            "f:4:1: warning: k is set in line 3 too; this one counts: remove one of them",
            "f:6:1: warning: nothing is meant by \"stray words\" here: write key=value, \
             [application] or app.port -> app.port; start comments with #",
            "f:8:1: warning: the section [A] is there already in line 5; the two are taken as one: \
             give each application one section",
            "f:9:6: warning: the value run ends here, where a comment starts: write \\# for a # in \
             a value, or a blank before a comment",
            "f:10:1: warning: a line that starts with // is skipped here, but other readers of \
             this format take it for a setting: start comments with #",
            "f:11:16: warning: a setting behind a connection counts for the whole section: only \
             latency=SECONDS and maxbuffered=TICKS belong to a connection; put settings on a line \
             of their own and # before a comment",
            "f:12:1: warning: the output A.o has the width 4 here and 3 in line 11: give all its \
             connections one width",
            "f:14:4: warning: Z has np=0 and is left out: set np to 1 or more to run it",
            "f:15:1: warning: the connection is left out, as Z has np=0: the port at its other end \
             is unconnected",
            "f:16:1: warning: this comment never ends, so only its first line is taken as one: \
             close it with */ or start each line with #",
        ]
    );
    assert_eq!(job.applications[0].variables.string("k"), Some("2"));
    assert_eq!(job.applications.len(), 2);
    assert_eq!(links(&job), ["A.o -> B.i 3", "A.o -> B.j 4"]);
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
        "f:7:1: the port B.x is used as output and as input: in line 6 it is an input: give the two \
         directions different port names",
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
        "f:3:5: text after the closing ] of a section: move it to a line of its own or put # before it",
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
            "f:4:10: the timebase must be a positive number of seconds, not 0: ",
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

#[test]
fn too_few_and_too_many_ranks_are_refused() {
    let job = good("np=2\nbinary=x\n[A]\n[B]\nnp=1\n");

    assert_eq!(job.check_ranks(3), Ok(()));
    for given in [0, 2, 4] {
        assert_eq!(
            job.check_ranks(given).unwrap_err().to_string(),
            format!(
                "f needs 3 processes (A 2, B 1), got {given}: start 3, or change np in the file"
            )
        );
    }
}

#[test]
fn a_program_that_nobody_coupled_is_a_job_of_one() {
    let job = Job::alone("x", 3);

    assert_eq!((job.ranks(), job.connections.len()), (3, 0));
    assert_eq!(job.application_of(2), Some(0));
}
