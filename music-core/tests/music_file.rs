//! What files say.

mod common;

use music_core::{Communication, Job, Severity};

use common::with_apps;

#[track_caller]
fn good(text: &str) -> Job {
    Job::parse("f", text).unwrap_or_else(|findings| panic!("{findings}"))
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
        "# two populations\nstoptime=1000.\nnp=2\n\n\
         [sender]\n  binary = ./a.py\n  args=-t 0.01 'x y'\n\
         [receiver]\n  np=3\n  binary=b\n  wd=/tmp\n\x20 \
         sender.out -> receiver.in [10, collective, table]\n",
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
    let header = "% NEST; with <urls> http://x.org/a->b and = signs\n\
                  /*\n * np=two\n * A.o -> Z.i\n */\n\
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
        d=a\\#b\\\\c\ne=one\\\ntwo\nf=\ng=\"two\nlines\"\nh\\=i = j=k\n\
        angular.z=0.5\n\u{fc}=\u{e9} \u{2192} x\n\
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
