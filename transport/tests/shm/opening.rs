//! Opening succeeds on all ranks or fails on all with one line, and leaves nothing behind.

use crate::job::{Job, PATIENCE_MS};

/// A small generator (splitmix): equal seeds give equal tests.
fn draw(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*seed ^ (*seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ (mixed >> 31)
}

#[test]
fn every_number_of_ranks_opens() {
    for ranks in [1, 2, 3, 5, 8, 32] {
        let variables = [("TUTTI_HEAP_MIB", "1")];
        let lines = Job::start_with(ranks, "open", &variables).finish();

        assert_eq!(lines.len(), ranks as usize);
        assert!(lines.iter().all(|line| line.text == "open"), "{lines:?}");
    }
}

#[test]
fn a_heap_larger_than_the_machine_is_one_error_line_on_every_rank() {
    for mib in ["1000000", "17592186044415"] {
        let lines = Job::start_with(3, "open", &[("TUTTI_HEAP_MIB", mib)]).finish();

        assert_eq!(lines.len(), 3);
        for line in lines {
            assert!(line.text.starts_with("open-error no memory"), "{line:?}");
            assert!(line.text.contains(mib), "{line:?}");
            assert!(line.text.contains("TUTTI_HEAP_MIB"), "{line:?}");
        }
    }
}

#[test]
fn a_rank_killed_while_opening_ends_the_opening_or_is_lost() {
    let mut seed = 1;
    for _ in 0..24 {
        let ranks = 4;
        let mut job = Job::start_with(ranks, "wait:block", &[(PATIENCE_MS, "3000")]);
        let victim = (draw(&mut seed) % u64::from(ranks)) as u32;
        let micros = draw(&mut seed) % 60_000;
        std::thread::sleep(std::time::Duration::from_micros(micros));

        job.kill(victim);

        let mut last: Vec<Option<String>> = vec![None; ranks as usize];
        for line in job.finish() {
            last[line.rank as usize] = Some(line.text);
        }
        for rank in (0..ranks).filter(|rank| *rank != victim) {
            let text = last[rank as usize].clone().unwrap_or_default();
            let named = text.contains(&format!("rank {victim}"));
            let by_manager = text.contains("process manager");
            assert!(
                named || by_manager,
                "{victim} killed after {micros} us: {rank} said {text:?}"
            );
        }
    }
}

#[test]
fn nothing_remains_when_all_ranks_are_killed_while_opening() {
    let mut seed = 2;
    let before = shared_files();
    for round in 0..24 {
        let mark = format!("tutti-test-{}-{round}", std::process::id());
        let mut job = Job::start_with(4, "wait:block", &[("TUTTI_TEST_MARK", &mark)]);
        let micros = draw(&mut seed) % 60_000;
        std::thread::sleep(std::time::Duration::from_micros(micros));

        for rank in 0..4 {
            job.kill(rank);
        }

        assert_eq!(
            processes_with(&mark),
            Vec::<u32>::new(),
            "after {micros} us"
        );
    }
    // The segment and the socket have no names: with the processes they are gone too.
    let after = shared_files();
    assert!(after.iter().all(|name| before.contains(name)), "{after:?}");
}

fn shared_files() -> Vec<String> {
    let files = std::fs::read_dir("/dev/shm")
        .into_iter()
        .flatten()
        .flatten();
    let names = files.map(|file| file.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.contains("tutti")).collect()
}

/// Processes whose environment holds a mark.
fn processes_with(mark: &str) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|process| process.file_name().to_str()?.parse().ok())
        .filter(|pid| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            String::from_utf8_lossy(&environment).contains(mark)
        })
        .collect()
}
