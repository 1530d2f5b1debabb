use super::*;
use crate::bootstrap::testing::Random;

/// A file of two nodes with 2 and 1 ranks, as Slurm 22.05 writes it in version 1; `extra` bytes are
/// appended to each entry, and a later version has more tables.
fn file(version: i32, extra: usize) -> Vec<u8> {
    let tables = if version == 1 { 5 } else { 7 };
    let header = 16 + 24 * tables;
    let entries: Vec<Vec<Vec<u8>>> = vec![
        vec![],
        vec![numbers(&[2, 1, 1]), numbers(&[1, 1, 1])],
        vec![
            numbers(&[0, 0, 0]),
            numbers(&[1, 0, 0]),
            numbers(&[0, 1, 1]),
        ],
        vec![node("n1"), node("n2")],
    ];
    let (mut row, mut body) = (Vec::new(), Vec::new());
    for table in 0..tables {
        let entries = entries.get(table).cloned().unwrap_or_default();
        let size = entries.first().map_or(52, Vec::len) + extra;
        row.extend((size as u64).to_le_bytes());
        row.extend(((header + body.len()) as u64).to_le_bytes());
        row.extend((entries.len() as u64).to_le_bytes());
        for mut entry in entries {
            entry.resize(size, 0xee);
            body.extend(entry);
        }
    }
    let total = header + body.len();
    [
        &version.to_le_bytes()[..],
        &[0; 4],
        &(total as u64).to_le_bytes(),
        &row,
        &body,
    ]
    .concat()
}

fn numbers(numbers: &[i32]) -> Vec<u8> {
    numbers
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect()
}

fn node(name: &str) -> Vec<u8> {
    let mut entry = numbers(&[-1]);
    entry.extend(name.bytes());
    entry.resize(4 + NAME, 0);
    entry
}

#[test]
fn every_version_is_read_by_its_own_sizes() {
    for (version, extra) in [(1, 0), (3, 4), (5, 0), (5, 24)] {
        let info = ApplicationInfo::parse(&file(version, extra)).unwrap();

        let place = |command, node| Place { command, node };
        assert_eq!(info.hosts, ["n1", "n2"], "version {version}");
        assert_eq!(info.ranks, [place(0, 0), place(0, 0), place(1, 1)]);
        assert_eq!(info.ranks[2].host(&info), "n2");
    }
}

#[test]
fn what_is_wrong_with_a_file_is_said() {
    let changed = |at: usize, bytes: &[u8]| {
        let mut file = file(1, 0);
        file[at..at + bytes.len()].copy_from_slice(bytes);
        ApplicationInfo::parse(&file).unwrap_err()
    };
    let row = |table: usize| 16 + 24 * table;
    for (text, expected) in [
        (changed(0, &[9]), "version is 9"),
        (changed(0, &[0]), "version is 0"),
        (changed(8, &[0xff; 8]), "of its"),
        (changed(row(2), &[4, 0]), "rows of table 2 have 4 bytes"),
        (
            changed(row(2) + 8, &[0xff; 8]),
            "table 2 lies beyond its end",
        ),
        (changed(row(3) + 16, &[0xff; 4]), "table 3 has -1 rows"),
        (
            changed(row(3) + 16, &[1, 0]),
            "rank 2 is of node 1, of which there are 1",
        ),
        (changed(row(1) + 16, &[1, 0]), "rank 2 is of program 1"),
        (changed(row(2) + 16, &[0, 0]), "no ranks"),
    ] {
        assert!(text.contains(expected), "{text}");
    }
    assert!(ApplicationInfo::parse(&[]).is_err());
}

#[test]
fn no_cut_of_a_file_is_taken_for_a_whole_one() {
    let whole = file(5, 8);
    for length in 0..whole.len() {
        assert!(
            ApplicationInfo::parse(&whole[..length]).is_err(),
            "{length}"
        );
    }
}

#[test]
fn no_bytes_whatever_break_the_parser() {
    let mut random = Random::new(21);
    for round in 0..200_000_u32 {
        let mut bytes = file(if round % 2 == 0 { 1 } else { 5 }, random.below(9));
        for _ in 0..1 + random.below(6) {
            let at = random.below(bytes.len());
            bytes[at] = [0, 1, 0x7f, 0x80, 0xff, 4][random.below(6)];
        }
        bytes.truncate(bytes.len() - random.below(3) * random.below(bytes.len()) / 2);

        if let Ok(info) = ApplicationInfo::parse(&bytes) {
            for place in &info.ranks {
                assert!(!place.host(&info).is_empty());
            }
        }
    }
}

#[test]
fn a_job_without_its_file_is_one_line_that_names_the_variable() {
    let folder = std::env::temp_dir();
    let garbage = folder.join(format!("tutti-apinfo-{}", std::process::id()));
    std::fs::write(&garbage, b"no such thing").unwrap();
    for (variables, expected) in [
        (vec![("PALS_APINFO", "/x")], "PALS_RANKID is not"),
        (vec![("PALS_RANKID", "0")], "PALS_APINFO is not"),
        (
            vec![("PALS_RANKID", "0"), ("PALS_APINFO", "/nowhere/apinfo")],
            "PALS_APINFO=\"/nowhere/apinfo\" cannot be read",
        ),
        (
            vec![
                ("PALS_RANKID", "0"),
                ("PALS_APINFO", garbage.to_str().unwrap()),
            ],
            "is no description of a job",
        ),
    ] {
        let lookup = |name: &str| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let patience = Patience::from_env(&lookup).unwrap();

        let text = join(patience, &lookup).unwrap_err().to_string();

        assert!(text.contains(expected) && !text.contains('\n'), "{text}");
    }
    std::fs::remove_file(&garbage).unwrap();
}

#[test]
fn a_job_of_one_meets_nobody() {
    let path = std::env::temp_dir().join(format!("tutti-apinfo1-{}", std::process::id()));
    let mut alone = file(1, 0);
    alone[16 + 24 * 2 + 16] = 1;
    std::fs::write(&path, alone).unwrap();
    let lookup = |name: &str| match name {
        "PALS_RANKID" => Some("0".to_owned()),
        "PALS_APINFO" => Some(path.to_str().unwrap().to_owned()),
        _ => None,
    };

    let joined = join(Patience::from_env(&lookup).unwrap(), &lookup).unwrap();

    assert_eq!((joined.rank, joined.size, joined.app), (0, 1, Some(0)));
    std::fs::remove_file(&path).unwrap();
}
