//! What the double punishes, seen by a program that opens it as a library.

use std::ffi::CStr;
use std::path::PathBuf;
use std::process::Command;
use std::ptr;

use libfabric_sys as sys;

/// The library, which is built before its tests.
fn library() -> sys::Library {
    let here = std::env::current_exe().unwrap();
    let path: PathBuf = here.with_file_name("libfabric_double.so");
    sys::Library::open_path(&path).unwrap()
}

/// An endpoint that knows itself, and a page that it registered.
struct Rig {
    library: sys::Library,
    fabric: *mut sys::fid_fabric,
    domain: *mut sys::fid_domain,
    av: *mut sys::fid_av,
    cq: *mut sys::fid_cq,
    ep: *mut sys::fid_ep,
    mr: *mut sys::fid_mr,
    page: Box<[u64; 512]>,
}

impl Rig {
    fn open(provider: &CStr) -> Self {
        let library = library();
        let info = offer(&library, provider);
        let none = ptr::null_mut();
        let mut rig = Self {
            library,
            fabric: ptr::null_mut(),
            domain: ptr::null_mut(),
            av: ptr::null_mut(),
            cq: ptr::null_mut(),
            ep: ptr::null_mut(),
            mr: ptr::null_mut(),
            page: Box::new([0; 512]),
        };
        // SAFETY: an info of the library has all attributes.
        let attr = unsafe { (*info).fabric_attr };
        // SAFETY: as above; a place for the object, as in all calls below.
        let code = unsafe { rig.library.fi_fabric(attr, &raw mut rig.fabric, none) };
        assert_eq!(code, 0);
        // SAFETY: an open fabric and its info.
        let code = unsafe { sys::fi_domain(rig.fabric, info, &raw mut rig.domain, none) };
        assert_eq!(code, 0);
        let mut attr = sys::fi_av_attr::default();
        // SAFETY: an open domain.
        let code = unsafe { sys::fi_av_open(rig.domain, &raw mut attr, &raw mut rig.av, none) };
        assert_eq!(code, 0);
        let mut attr = sys::fi_cq_attr {
            size: 8,
            format: sys::FI_CQ_FORMAT_CONTEXT,
            wait_obj: sys::FI_WAIT_NONE,
            ..Default::default()
        };
        // SAFETY: an open domain.
        let code = unsafe { sys::fi_cq_open(rig.domain, &raw mut attr, &raw mut rig.cq, none) };
        assert_eq!(code, 0);
        // SAFETY: an open domain and its info.
        let code = unsafe { sys::fi_endpoint(rig.domain, info, &raw mut rig.ep, none) };
        assert_eq!(code, 0);
        // SAFETY: made by this library, and not used again.
        unsafe { rig.library.fi_freeinfo(info) };
        rig.join();
        rig
    }

    fn join(&mut self) {
        // SAFETY: open objects of one domain.
        let code = unsafe { sys::fi_ep_bind(self.ep, self.av.cast(), 0) };
        assert_eq!(code, 0);
        // SAFETY: as above.
        let code = unsafe { sys::fi_ep_bind(self.ep, self.cq.cast(), sys::FI_TRANSMIT) };
        assert_eq!(code, 0);
        // SAFETY: as above.
        assert_eq!(unsafe { sys::fi_enable(self.ep) }, 0);
        let (start, none) = (self.page.as_ptr().cast(), ptr::null_mut());
        let access = sys::FI_REMOTE_READ | sys::FI_REMOTE_WRITE;
        let mr = &raw mut self.mr;
        // SAFETY: the page lives as long as the rig.
        let code = unsafe { sys::fi_mr_reg(self.domain, start, 4096, access, 0, 7, 0, mr, none) };
        assert_eq!(code, 0);
        let mut address = [0_u8; 64];
        let mut bytes = address.len();
        let to = address.as_mut_ptr().cast();
        // SAFETY: room as said.
        assert_eq!(unsafe { sys::fi_getname(self.ep, to, &raw mut bytes) }, 0);
        let from = address.as_ptr().cast();
        // SAFETY: one address of this form.
        let count = unsafe { sys::fi_av_insert(self.av, from, 1, none.cast(), 0, none) };
        assert_eq!(count, 1);
    }

    fn at(&self, word: usize) -> u64 {
        self.page.as_ptr() as u64 + 8 * word as u64
    }

    /// Writes the first word to a place of the page; what became of it.
    fn write(&mut self, at: u64, key: u64) -> i32 {
        let (from, none) = (self.page.as_ptr().cast(), ptr::null_mut());
        // SAFETY: an open endpoint, memory that stays.
        let desc = unsafe { sys::fi_mr_desc(self.mr) };
        // SAFETY: as above.
        let posted = unsafe { sys::fi_write(self.ep, from, 8, desc, 0, at, key, none) };
        assert_eq!(posted, 0);
        loop {
            let mut entry = sys::fi_cq_entry::default();
            // SAFETY: an open queue, room for one entry.
            let read = unsafe { sys::fi_cq_read(self.cq, (&raw mut entry).cast(), 1) };
            match i32::try_from(read).unwrap() {
                1 => return 0,
                code if code == -sys::FI_EAVAIL => {
                    let mut entry = sys::ErrorEntry::default();
                    // SAFETY: an open queue, room for any entry.
                    let read = unsafe { sys::fi_cq_readerr(self.cq, &raw mut entry, 0) };
                    assert_eq!(read, 1);
                    return entry.entry.err;
                }
                code => assert_eq!(code, -sys::FI_EAGAIN),
            }
        }
    }

    fn key(&self) -> u64 {
        // SAFETY: open memory.
        unsafe { sys::fi_mr_key(self.mr) }
    }

    fn close(self) {
        let in_order: [*mut sys::fid; 6] = [
            self.mr.cast(),
            self.ep.cast(),
            self.cq.cast(),
            self.av.cast(),
            self.domain.cast(),
            self.fabric.cast(),
        ];
        for fid in in_order {
            // SAFETY: open, and not used again.
            assert_eq!(unsafe { sys::fi_close(fid) }, 0);
        }
    }
}

fn offer(library: &sys::Library, provider: &CStr) -> *mut sys::fi_info {
    let mut list = ptr::null_mut();
    let (none, version) = (ptr::null(), library.api_version());
    // SAFETY: no hints; a place for the list.
    let code = unsafe { library.fi_getinfo(version, none, none, 0, ptr::null(), &raw mut list) };
    assert_eq!(code, 0);
    let mut info = list;
    while !info.is_null() {
        // SAFETY: an info of the library has all attributes.
        let fabric = unsafe { (*info).fabric_attr };
        // SAFETY: as above.
        let name = unsafe { (*fabric).prov_name };
        // SAFETY: a text that ends in zero.
        if unsafe { CStr::from_ptr(name) } == provider {
            break;
        }
        // SAFETY: as above.
        info = unsafe { (*info).next };
    }
    assert!(!info.is_null(), "no {provider:?}");
    // SAFETY: an info of the library.
    let copy = unsafe { library.fi_dupinfo(info) };
    // SAFETY: made by the library, and not used again.
    unsafe { library.fi_freeinfo(list) };
    copy
}

#[test]
fn a_write_arrives_and_one_with_a_wrong_key_or_beyond_the_memory_is_an_error() {
    let mut rig = Rig::open(c"gni");
    let (key, own, outside) = (rig.key(), rig.at(9), rig.at(512));
    rig.page[0] = 5;

    assert_eq!(rig.write(own, key), 0);
    assert_eq!(rig.page[9], 5);
    assert_eq!(rig.write(outside, key), sys::FI_EACCES);
    assert_eq!(rig.write(own, key ^ 1), sys::FI_EACCES);
    rig.close();
}

#[test]
fn what_is_too_long_to_be_injected_and_a_fence_that_there_is_not_are_refused() {
    let mut rig = Rig::open(c"opx");
    let from: *mut core::ffi::c_void = rig.page.as_mut_ptr().cast();
    let key = rig.key();

    // SAFETY: an open endpoint, memory that stays.
    let injected = unsafe { sys::fi_inject_write(rig.ep, from, 17, 0, 0, key) };
    assert_eq!(injected, -(sys::FI_EMSGSIZE as isize));
    let here = sys::iovec {
        iov_base: from,
        iov_len: 8,
    };
    let there = sys::fi_rma_iov {
        addr: 0,
        len: 8,
        key,
    };
    let message = sys::fi_msg_rma {
        msg_iov: &raw const here,
        iov_count: 1,
        rma_iov: &raw const there,
        rma_iov_count: 1,
        ..Default::default()
    };
    // SAFETY: as above.
    let fenced = unsafe { sys::fi_writemsg(rig.ep, &raw const message, sys::FI_FENCE) };
    assert_eq!(fenced, -(sys::FI_EOPNOTSUPP as isize));
    let mut count = 0;
    // SAFETY: as above.
    let valid =
        unsafe { sys::fi_fetch_atomicvalid(rig.ep, sys::FI_UINT64, sys::FI_SUM, &raw mut count) };
    assert_eq!(valid, -sys::FI_EOPNOTSUPP);
    rig.close();
}

/// The child's part; nothing in a process that was told no sin.
#[test]
fn the_sin_of_a_child() {
    let Ok(sin) = std::env::var(SIN) else {
        return;
    };
    let mut rig = Rig::open(c"verbs;ofi_rxm");
    let (at, key) = (rig.at(1), rig.key());
    match sin.as_str() {
        "use after close" => {
            // SAFETY: none: that is the point; the double keeps the object for it.
            unsafe { sys::fi_close(rig.ep.cast()) };
            rig.write(at, key);
        }
        "domain first" => {
            // SAFETY: none, as above.
            unsafe { sys::fi_close(rig.domain.cast()) };
        }
        "unregistered" => {
            let word = Box::new(1_u64);
            let (from, none) = (ptr::from_ref(&*word).cast(), ptr::null_mut());
            // SAFETY: an open endpoint; the double must end the process.
            unsafe { sys::fi_write(rig.ep, from, 8, none, 0, at, key, none) };
        }
        "overrun" => {
            let (from, none) = (rig.page.as_ptr().cast(), ptr::null_mut());
            // SAFETY: open memory.
            let desc = unsafe { sys::fi_mr_desc(rig.mr) };
            for _ in 0..40 {
                // SAFETY: an open endpoint, memory that stays.
                unsafe { sys::fi_write(rig.ep, from, 8, desc, 0, at, key, none) };
            }
            let none: *mut core::ffi::c_void = ptr::null_mut();
            for _ in 0..100_000 {
                // SAFETY: an open queue, room for no entry.
                unsafe { sys::fi_cq_read(rig.cq, none, 0) };
            }
        }
        _ => panic!("{sin}"),
    }
}

#[test]
fn what_hardware_would_answer_with_damage_ends_the_process_with_a_line() {
    for (sin, line) in [
        ("use after close", "an endpoint is used after it was closed"),
        ("domain first", "closed before those that depend on it"),
        ("unregistered", "FI_MR_LOCAL"),
        ("overrun", "a completion queue is overrun"),
    ] {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture", "the_sin_of_a_child"])
            .env(SIN, sin)
            .output()
            .unwrap();

        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{sin}");
        assert!(
            said.contains("libfabric double: ") && said.contains(line),
            "{sin}: {said}"
        );
    }
}

const SIN: &str = "LIBFABRIC_DOUBLE_SIN";
