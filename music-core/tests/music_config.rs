//! `_MUSIC_CONFIG_` as the reference's launcher writes it: the strings were captured from
//! MUSIC 1.1.16 started on the same text.

use music_core::Job;

const FILE: &str = r#"stoptime=1.5
timebase=1e-6
shared=it's: mine
np=1
[zed]
  binary=./dump.sh
  args=-x "a b" c d
  z=1
  zed.vm -> B.v [3,collective,table]
[A]
  np=2
  binary=./dump.sh
  b\=c=back\\slash \:colon
[B]
  binary=./dump.sh
  A.spk -> B.in [10]
  A.spk -> C.in [10, collective, table]
  A.aux -> B.v2
  C.o -> zed.i
[C]
  binary=./dump.sh
"#;

const CAPTURED: [&str; 4] = [
    concat!(
        r"zed:0:4:zed:1:A:2:B:1:C:1:",
        r"2:i:1:-1:1:zed:i:4:3:1:1:0:vm:0:3:1:B:v:0:2:1:0:1:",
        r"args=-x Qa bQ c d:binary=./dump.sh:z=1:",
        r"np=1:shared=it's\: mine:stoptime=1.5:timebase=1e-6",
    ),
    concat!(
        r"A:1:4:zed:1:A:2:B:1:C:1:",
        r"2:aux:0:-1:1:B:v2:3:2:1:1:0:spk:0:10:2:B:in:1:2:1:1:0:C:in:2:3:1:0:1:",
        r"b=c=back\\slash \:colon:binary=./dump.sh:np=2:",
        r"shared=it's\: mine:stoptime=1.5:timebase=1e-6",
    ),
    concat!(
        r"B:2:4:zed:1:A:2:B:1:C:1:",
        r"3:in:1:10:1:B:in:1:1:2:1:0:v:1:3:1:B:v:0:0:1:0:1:v2:1:-1:1:B:v2:3:1:2:1:0:",
        r"binary=./dump.sh:",
        r"np=1:shared=it's\: mine:stoptime=1.5:timebase=1e-6",
    ),
    concat!(
        r"C:3:4:zed:1:A:2:B:1:C:1:",
        r"2:in:1:10:1:C:in:2:1:2:0:1:o:0:-1:1:zed:i:4:0:1:1:0:",
        r"binary=./dump.sh:",
        r"np=1:shared=it's\: mine:stoptime=1.5:timebase=1e-6",
    ),
];

#[test]
fn every_application_gets_what_the_reference_gives_it() {
    let job = Job::parse("f.music", FILE).unwrap();

    for (application, captured) in CAPTURED.iter().enumerate() {
        assert_eq!(job.music_config(application), captured.replace('Q', "\""));
    }
}

#[test]
fn a_file_with_the_documented_example_encodes_as_documented() {
    let text = "shared=it's: mine\nstoptime=1.5\ntimebase=1e-6\n[A]\nnp=2\nbinary=./dump.sh\n\
                args=-x \"a b\" c d\n[B]\nnp=1\nbinary=b\nA.spk->B.in[10]\n[C]\nnp=1\nbinary=c\n\
                A.spk->C.in[10,collective,table]\nA.vm->B.v\n";
    let job = Job::parse("f.music", text).unwrap();

    assert_eq!(
        job.music_config(0),
        "A:0:3:A:2:B:1:C:1:2:spk:0:10:2:B:in:0:1:1:1:0:C:in:1:2:1:0:1:vm:0:-1:1:B:v:2:1:1:1:0:\
         args=-x \"a b\" c d:binary=./dump.sh:np=2:shared=it's\\: mine:stoptime=1.5:timebase=1e-6"
    );
}
