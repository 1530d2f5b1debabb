//! The calls are right on the libraries that can be had: a real provider, no double.
//!
//! The library is the one that a program would open (`TUTTI_LIBFABRIC`, or the system's). Another
//! one is tried too if `TUTTI_LIBFABRIC_NEWER` names its file: in a process of its own, since the
//! system takes two files of one name for the same library.

use std::ffi::c_int;
use std::process::Command;
use std::ptr;

use libfabric_sys as ofi;
use ofi::Library;

mod rig;

use rig::Rig;

/// The library, or a line that says why the test is left out. Ends the process if a call hangs.
fn library() -> Option<Library> {
    // SAFETY: it has no precondition; the signal's default ends the process.
    unsafe { libc::alarm(240) };
    Library::open()
        .inspect_err(|error| println!("skipped: {error}"))
        .ok()
}

#[test]
fn the_library_says_where_it_is_and_what_it_is() {
    let Some(library) = library() else { return };

    let version = library.fi_version();
    println!(
        "libfabric {}.{} of {}",
        version >> 16,
        version & 0xFFFF,
        library.path().display()
    );

    assert!(library.path().is_file(), "{}", library.path().display());
    assert!(version >= ofi::version(1, 9));
    assert_eq!(library.api_version(), version.min(ofi::version(1, 17)));
    assert_eq!(
        library.fi_strerror(-ofi::FI_EAVAIL),
        library.fi_strerror(ofi::FI_EAVAIL)
    );
    assert!(!library.fi_strerror(ofi::FI_ENODATA).is_empty());
}

#[test]
fn providers_are_listed_at_the_version_that_the_structures_are_of() {
    let Some(library) = library() else { return };
    let mut info = ptr::null_mut();

    let version = library.api_version();
    let none = ptr::null();
    // SAFETY: nothing is hinted at, and the result can be written.
    let found = unsafe { library.fi_getinfo(version, none, none, 0, ptr::null(), &raw mut info) };

    assert_eq!(found, 0, "{}", library.fi_strerror(found));
    let mut names = Vec::new();
    let mut next = info;
    // SAFETY: the list is the library's own, and ends with null.
    while let Some(one) = unsafe { next.as_ref() } {
        // SAFETY: an entry of the library's own has all its parts.
        let fabric = unsafe { &*one.fabric_attr };
        assert_eq!(fabric.api_version, version);
        // SAFETY: the name ends with a zero.
        let name = unsafe { std::ffi::CStr::from_ptr(fabric.prov_name) };
        names.push(name.to_str().unwrap().to_owned());
        next = one.next;
    }
    names.sort();
    names.dedup();
    println!("providers: {}", names.join(" "));
    assert!(names.iter().any(|name| name == "tcp;ofi_rxm"), "{names:?}");

    // SAFETY: the entry is the library's own; this is the only thread in the call.
    let words = unsafe { library.fi_tostr(info.cast(), ofi::FI_TYPE_INFO) };
    assert!(words.starts_with("fi_info:"), "{words}");
    // SAFETY: the list is the library's own, and not used again.
    unsafe { library.fi_freeinfo(info) };
}

#[test]
fn a_put_and_a_fetch_add_reach_oneself() {
    let Some(library) = library() else { return };
    let mut rig = Rig::new(library);

    put(&mut rig);
    inject(&mut rig);
    put_with_flags(&mut rig);
    get(&mut rig);
    fetch_add(&mut rig);
    inject_add(&mut rig);
    compare_and_swap(&mut rig);
    put_with_data(&mut rig);
    block(&mut rig);
    questions(&mut rig);
}

/// Words of the rig's memory: what is sent, what is written, what comes back.
const SOURCE: usize = 0;
const TARGET: usize = 64;
const RESULT: usize = 128;
const COMPARE: usize = 192;

fn set(rig: &mut Rig, index: usize, value: u64) {
    // SAFETY: a word of the rig's memory, with no operation on it under way.
    unsafe { rig.local(index).cast::<u64>().write_volatile(value) };
}

fn put(rig: &mut Rig) {
    set(rig, SOURCE, 11);
    rig.post("fi_write", |rig| {
        let (ep, desc, me) = (rig.ep, rig.desc(), rig.me());
        let (source, target, key) = (rig.local(SOURCE), rig.remote(TARGET), rig.key());
        let context = rig.context();
        // SAFETY: the source is the rig's memory and unchanged until the completion.
        unsafe { ofi::fi_write(ep, source, 8, desc, me, target, key, context) }
    });
    let completions = rig.until("the put", |rig, done| done > 0 && rig.word(TARGET) == 11);
    assert_eq!(completions, 1);
}

fn inject(rig: &mut Rig) {
    let word = 12_u64;
    rig.post("fi_inject_write", |rig| {
        let (target, key) = (rig.remote(TARGET), rig.key());
        // SAFETY: the source has eight bytes.
        unsafe { ofi::fi_inject_write(rig.ep, (&raw const word).cast(), 8, rig.me(), target, key) }
    });
    rig.until("the injected put", |rig, _| rig.word(TARGET) == 12);
}

fn put_with_flags(rig: &mut Rig) {
    set(rig, SOURCE, 13);
    rig.post("fi_writemsg", |rig| {
        let local = ofi::iovec {
            iov_base: rig.local(SOURCE),
            iov_len: 8,
        };
        let remote = ofi::fi_rma_iov {
            addr: rig.remote(TARGET),
            len: 8,
            key: rig.key(),
        };
        let mut desc = rig.desc();
        let message = ofi::fi_msg_rma {
            msg_iov: &raw const local,
            desc: &raw mut desc,
            iov_count: 1,
            addr: rig.me(),
            rma_iov: &raw const remote,
            rma_iov_count: 1,
            context: rig.context(),
            data: 0,
        };
        let flags = ofi::FI_DELIVERY_COMPLETE | ofi::FI_COMPLETION;
        // SAFETY: the source is the rig's memory and unchanged until the completion.
        unsafe { ofi::fi_writemsg(rig.ep, &raw const message, flags) }
    });
    rig.until("the put with flags", |rig, done| {
        done > 0 && rig.word(TARGET) == 13
    });
}

fn get(rig: &mut Rig) {
    set(rig, RESULT, 0);
    rig.post("fi_read", |rig| {
        let (ep, desc, me) = (rig.ep, rig.desc(), rig.me());
        let (result, target, key) = (rig.local(RESULT), rig.remote(TARGET), rig.key());
        let context = rig.context();
        // SAFETY: nobody looks at the result until the completion.
        unsafe { ofi::fi_read(ep, result, 8, desc, me, target, key, context) }
    });
    rig.until("the read", |_, done| done > 0);
    assert_eq!(rig.word(RESULT), 13);
}

fn fetch_add(rig: &mut Rig) {
    let (kind, sum) = (ofi::FI_UINT64, ofi::FI_SUM);
    let mut count = 0;
    // SAFETY: the endpoint is enabled, the count can be written.
    let valid = unsafe { ofi::fi_fetch_atomicvalid(rig.ep, kind, sum, &raw mut count) };
    assert_eq!((valid, count > 0), (0, true));
    set(rig, SOURCE, 100);
    for before in [13, 113, 213] {
        rig.post("fi_fetch_atomic", |rig| {
            let (ep, desc, me) = (rig.ep, rig.desc(), rig.me());
            let (source, result) = (rig.local(SOURCE), rig.local(RESULT));
            let (target, key, context) = (rig.remote(TARGET), rig.key(), rig.context());
            // SAFETY: the operand is unchanged and the result not looked at until the completion.
            unsafe {
                ofi::fi_fetch_atomic(
                    ep, source, 1, desc, result, desc, me, target, key, kind, sum, context,
                )
            }
        });
        rig.until("the fetch-add", |_, done| done > 0);
        assert_eq!(rig.word(RESULT), before);
    }
    assert_eq!(rig.word(TARGET), 313);
}

fn inject_add(rig: &mut Rig) {
    let (kind, sum) = (ofi::FI_UINT64, ofi::FI_SUM);
    let (mut count, operand) = (0, 7_u64);
    // SAFETY: the endpoint is enabled, the count can be written.
    let valid = unsafe { ofi::fi_atomicvalid(rig.ep, kind, sum, &raw mut count) };
    assert_eq!((valid, count > 0), (0, true));
    rig.post("fi_inject_atomic", |rig| {
        let (ep, me, target, key) = (rig.ep, rig.me(), rig.remote(TARGET), rig.key());
        let operand = (&raw const operand).cast();
        // SAFETY: the operand is one word.
        unsafe { ofi::fi_inject_atomic(ep, operand, 1, me, target, key, kind, sum) }
    });
    rig.until("the injected add", |rig, _| rig.word(TARGET) == 320);
}

fn compare_and_swap(rig: &mut Rig) {
    let (kind, swap) = (ofi::FI_UINT64, ofi::FI_CSWAP);
    set(rig, SOURCE, 500);
    for (expected, before, after) in [(1, 320, 320), (320, 320, 500)] {
        set(rig, COMPARE, expected);
        rig.post("fi_compare_atomic", |rig| {
            let (ep, desc, me) = (rig.ep, rig.desc(), rig.me());
            let (source, compare) = (rig.local(SOURCE), rig.local(COMPARE));
            let (result, context) = (rig.local(RESULT), rig.context());
            let (target, key) = (rig.remote(TARGET), rig.key());
            // SAFETY: operands are unchanged and the result not looked at until the completion.
            unsafe {
                ofi::fi_compare_atomic(
                    ep, source, 1, desc, compare, desc, result, desc, me, target, key, kind, swap,
                    context,
                )
            }
        });
        rig.until("the exchange", |_, done| done > 0);
        assert_eq!((rig.word(RESULT), rig.word(TARGET)), (before, after));
    }
}

/// The sender's completion and the receiver's are two, and both are here.
fn put_with_data(rig: &mut Rig) {
    set(rig, SOURCE, 14);
    rig.post("fi_writedata", |rig| {
        let (ep, desc, me) = (rig.ep, rig.desc(), rig.me());
        let (source, target, key) = (rig.local(SOURCE), rig.remote(TARGET), rig.key());
        let context = rig.context();
        // SAFETY: the source is the rig's memory and unchanged until the completion.
        unsafe { ofi::fi_writedata(ep, source, 8, desc, 99, me, target, key, context) }
    });
    rig.until("the put with data", |rig, done| {
        done > 1 && rig.word(TARGET) == 14
    });
}

/// Calls that only ask.
fn questions(rig: &mut Rig) {
    let (kind, sum) = (ofi::FI_UINT64, ofi::FI_SUM);
    let mut attr = ofi::fi_atomic_attr::default();
    let (asked, flags) = (&raw mut attr, ofi::FI_FETCH_ATOMIC);
    // SAFETY: the domain is open, the answer can be written.
    let answer = unsafe { ofi::fi_query_atomic(rig.domain, kind, sum, asked, flags) };
    assert_eq!((answer, attr.size), (0, 8));

    let mut room = ofi::ErrorEntry::default();
    // SAFETY: the queue is open, and the entry has room for any library's.
    let read = unsafe { ofi::fi_cq_readerr(rig.cq, &raw mut room, 0) };
    assert_eq!(read, -(ofi::FI_EAGAIN as isize));

    // SAFETY: the queue is open, and no entry is asked for; the address has nowhere to go.
    let read = unsafe { ofi::fi_cq_readfrom(rig.cq, ptr::null_mut(), 0, ptr::null_mut()) };
    assert!(read <= 0, "{read}");

    let (mut value, mut length) = (0_usize, size_of::<usize>());
    let (level, name) = (ofi::FI_OPT_ENDPOINT, ofi::FI_OPT_CM_DATA_SIZE);
    let (place, size) = ((&raw mut value).cast(), &raw mut length);
    // SAFETY: the endpoint is open, the value has room for what the option is.
    let got = unsafe { ofi::fi_getopt(rig.ep, level, name, place, size) };
    assert!(
        [0, -ofi::FI_ENOPROTOOPT, -ofi::FI_ENOSYS].contains(&got),
        "{got}"
    );
    assert!(rig.address().contains("127.0.0.1"), "{}", rig.address());
}

/// The queue's descriptor and the question whether it is safe to block on it.
fn block(rig: &mut Rig) {
    let mut fd: c_int = -1;
    // SAFETY: the command of a queue with a descriptor takes room for one.
    let got = unsafe { ofi::fi_control(rig.cq.cast(), ofi::FI_GETWAIT, (&raw mut fd).cast()) };
    assert_eq!((got, fd >= 0), (0, true));
    let mut fids = [rig.cq.cast::<ofi::fid>()];
    rig.until("a quiet queue", |rig, _| {
        // SAFETY: the fabric and the queue are open.
        unsafe { ofi::fi_trywait(rig.fabric, fids.as_mut_ptr(), 1) == 0 }
    });
}

#[test]
fn the_same_holds_on_the_library_that_tutti_libfabric_newer_names() {
    let Some(path) = std::env::var_os("TUTTI_LIBFABRIC_NEWER") else {
        println!("skipped: TUTTI_LIBFABRIC_NEWER names no other library");
        return;
    };

    let tests = Command::new(std::env::current_exe().unwrap())
        .args(["--nocapture", "--test-threads=1"])
        .env(ofi::PATH_VARIABLE, path)
        .env_remove("TUTTI_LIBFABRIC_NEWER")
        .output()
        .unwrap();

    let output = String::from_utf8_lossy(&tests.stdout);
    let errors = String::from_utf8_lossy(&tests.stderr);
    assert!(tests.status.success(), "{output}{errors}");
    assert!(!output.contains("skipped: libfabric"), "{output}");
}
