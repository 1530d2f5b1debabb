//! The user's reference of the file format tells the truth.

use music_core::Job;

const REFERENCE: &str = include_str!("../../docs/music-file.md");

#[test]
fn every_example_is_a_file_without_fault() {
    let blocks = REFERENCE.split("```music\n").skip(1);
    let examples: Vec<&str> = blocks
        .map(|block| block.split("```").next().unwrap())
        .collect();

    assert!(examples.len() >= 2);
    for example in examples {
        let job = Job::parse("example", example).unwrap_or_else(|findings| panic!("{findings}"));
        assert!(job.warnings.is_empty(), "{:?}", job.warnings);
        assert!(!job.connections.is_empty());
    }
}

/// A file for each message, and a part of it that the reference must hold word for word.
const MISTAKES: &[(&str, &str)] = &[
    ("\0", "a NUL character, which no program can be given"),
    ("", "the file names no application"),
    (
        "np=1\nbinary=x\nstoptime=1e300\n[A]",
        "1e300 s cannot be counted in units of 1e-9 s",
    ),
    ("[A]\nbinary=x", "the application A has no np"),
    (
        "np=two\nbinary=x\n[A]",
        "np is \"two\", which is not a whole number of processes",
    ),
    ("np=0\nbinary=x\n[A]", "no application has any processes"),
    (
        "np=2147483648\nbinary=x\n[A]",
        "makes more processes than can be numbered",
    ),
    (
        "np=1\nbinary=x\nstoptime=x\n[A]",
        "stoptime is \"x\", which is not a number of seconds",
    ),
    (
        "np=1\nbinary=x\ntimebase=0\n[A]",
        "the timebase must be a positive number",
    ),
    (
        "np=1\nbinary=x\nargs=\\\"\n[A]",
        "the args hold a \" that is never closed",
    ),
    (
        "np=1\nbinary=x\nk=\"\n[A]",
        "the quoted value of k never ends",
    ),
    (
        "np=1\nbinary=x\nk=\"\" x\n[A]",
        "text after the quoted value of k",
    ),
    ("np=1\nbinary=x\n[A", "the section [A is not closed"),
    (
        "np=1\nbinary=x\n[A] x",
        "text after the closing ] of a section",
    ),
    ("np=1\nbinary=x\n[]", "a section without a name"),
    ("np=1\nbinary=x\n[A]\nA.o->Z.i", "there is no application Z"),
    (
        "np=1\nbinary=x\n[A]\nA.o-Z.i",
        "this looks like a connection with the wrong arrow",
    ),
    ("np=1\nbinary=x\n[A]\nA.o-->Z.i", "is not one of -> and <-"),
    (
        "np=1\nbinary=x\n[A]\nA.o->",
        "one side of the arrow is empty",
    ),
    (
        "np=1\nbinary=x\n[A]\nA.->Z.i",
        "lacks a name beside its dot",
    ),
    ("np=1\nbinary=x\n[A]\nA.o->Z.i,", "is no port name"),
    (
        "np=1\nbinary=x\np->A.i\n[A]",
        "which application the sender port p belongs to is not said",
    ),
    ("np=1\nbinary=x\n[A]\nA.o->A.i", "A is connected to itself"),
    (
        "np=1\nbinary=x\n[A]\n[B]\nA.o->B.i[",
        "the bracket behind this connection is not closed",
    ),
    (
        "np=1\nbinary=x\n[A]\n[B]\nA.o->B.i[][]",
        "a second bracket behind a connection",
    ),
    (
        "np=1\nbinary=x\n[A]\n[B]\nA.o->B.i[x]",
        "is not a whole number from 0 up",
    ),
    (
        "np=1\nbinary=x\n[A]\n[B]\nA.o->B.i[1 2]",
        "there are several numbers in the width",
    ),
    (
        "np=1\nbinary=x\n[A]\n[B]\nA.o->B.i[5000000000]",
        "is more than there are ids",
    ),
    (
        "np=1\nbinary=x\n[A]\n[B]\nA.o->B.i[tree]",
        "the bracket starts with the word",
    ),
    (
        "np=1\nbinary=x\n[A]\n[B]\nA.o->B.i[1,x]",
        "unknown communication",
    ),
    (
        "np=1\nbinary=x\n[A]\n[B]\nA.o->B.i[1,collective,x]",
        "unknown processing",
    ),
    (
        "np=1\nbinary=x\n[A]\n[B]\nA.o->B.i[] latency=x",
        "is no number of seconds",
    ),
    (
        "np=1\nbinary=x\n[A]\n[B]\nA.o->B.i[] maxbuffered=x",
        "is no number of ticks",
    ),
    ("np=1\nbinary=x\n[A]\nk=1\nk=2\n!", "too; this one counts"),
    ("np=1\nbinary=x\n[A]\nline\n[", "nothing is meant by"),
    ("//\n", "a line that starts with // is skipped here"),
    (
        "/*\n",
        "this comment never ends, so only its first line is taken as one",
    ),
    ("=\n", "a value without a name"),
];

#[test]
fn every_message_is_in_the_reference_as_it_is_said() {
    for (text, message) in MISTAKES {
        let said = match Job::parse("f", text) {
            Ok(job) => job.warnings.iter().map(ToString::to_string).collect(),
            Err(findings) => findings.to_string(),
        };
        assert!(said.contains(message), "{text:?} says {said}");
        assert!(REFERENCE.contains(message), "{message}");
    }
}
