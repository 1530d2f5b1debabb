//! One endpoint over `tcp;ofi_rxm` on 127.0.0.1 that reaches itself.

use std::ffi::{CStr, c_int, c_void};
use std::ptr;
use std::time::{Duration, Instant};

use libfabric_sys as ofi;
use ofi::Library;

/// How long a wait may take: connecting to oneself on a busy machine included.
const DEADLINE: Duration = Duration::from_secs(60);

/// What the endpoint's peers, itself that is, may write to; words, so that atomics are aligned.
const WORDS: usize = 512;

/// Everything from the fabric to the registered memory.
pub(crate) struct Rig {
    library: Library,
    info: *mut ofi::fi_info,
    pub(crate) fabric: *mut ofi::fid_fabric,
    pub(crate) domain: *mut ofi::fid_domain,
    pub(crate) cq: *mut ofi::fid_cq,
    av: *mut ofi::fid_av,
    pub(crate) ep: *mut ofi::fid_ep,
    mr: *mut ofi::fid_mr,
    memory: Box<[u64; WORDS]>,
    /// What a provider may keep its own words in, one for each operation under way.
    context: Box<ofi::fi_context2>,
    me: ofi::fi_addr_t,
}

impl Rig {
    /// Opens everything, in the order of the manual.
    pub(crate) fn new(library: Library) -> Self {
        let info = info(&library);
        let mut rig = Self {
            library,
            info,
            fabric: ptr::null_mut(),
            domain: ptr::null_mut(),
            cq: ptr::null_mut(),
            av: ptr::null_mut(),
            ep: ptr::null_mut(),
            mr: ptr::null_mut(),
            memory: Box::new([0; WORDS]),
            context: Box::default(),
            me: ofi::FI_ADDR_UNSPEC,
        };
        rig.open();
        rig.register();
        rig.enable();
        rig.meet();
        rig
    }

    fn open(&mut self) {
        let none = ptr::null_mut();
        // SAFETY: the info is the library's own.
        let attr = unsafe { (*self.info).fabric_attr };
        // SAFETY: as above, and the result can be written.
        let opened = unsafe { self.library.fi_fabric(attr, &raw mut self.fabric, none) };
        self.must("fi_fabric", opened);
        // SAFETY: the fabric was opened by the same library.
        let opened = unsafe { ofi::fi_domain(self.fabric, self.info, &raw mut self.domain, none) };
        self.must("fi_domain", opened);
        let mut attr = ofi::fi_cq_attr {
            size: 64,
            format: ofi::FI_CQ_FORMAT_CONTEXT,
            wait_obj: ofi::FI_WAIT_FD,
            ..Default::default()
        };
        // SAFETY: the domain is open.
        let opened = unsafe { ofi::fi_cq_open(self.domain, &raw mut attr, &raw mut self.cq, none) };
        self.must("fi_cq_open", opened);
        let mut attr = ofi::fi_av_attr {
            type_: ofi::FI_AV_TABLE,
            count: 1,
            ..Default::default()
        };
        // SAFETY: the domain is open.
        let opened = unsafe { ofi::fi_av_open(self.domain, &raw mut attr, &raw mut self.av, none) };
        self.must("fi_av_open", opened);
        // SAFETY: the domain was opened with this info.
        let opened = unsafe { ofi::fi_endpoint(self.domain, self.info, &raw mut self.ep, none) };
        self.must("fi_endpoint", opened);
    }

    fn register(&mut self) {
        let access = ofi::FI_REMOTE_READ | ofi::FI_REMOTE_WRITE | ofi::FI_READ | ofi::FI_WRITE;
        let start = self.memory.as_mut_ptr().cast::<c_void>();
        // SAFETY: the memory is the rig's own, and registered until the rig is dropped.
        let registered = unsafe {
            ofi::fi_mr_reg(
                self.domain,
                start,
                size_of_val(&*self.memory),
                access,
                0,
                0x7357,
                0,
                &raw mut self.mr,
                ptr::null_mut(),
            )
        };
        self.must("fi_mr_reg", registered);
    }

    fn enable(&mut self) {
        let both = ofi::FI_TRANSMIT | ofi::FI_RECV;
        // SAFETY: endpoint and queue are open, of one domain.
        let bound = unsafe { ofi::fi_ep_bind(self.ep, self.cq.cast(), both) };
        self.must("fi_ep_bind", bound);
        // SAFETY: as above.
        let bound = unsafe { ofi::fi_ep_bind(self.ep, self.av.cast(), 0) };
        self.must("fi_ep_bind", bound);
        // SAFETY: the endpoint is open.
        let enabled = unsafe { ofi::fi_enable(self.ep) };
        self.must("fi_enable", enabled);
        if self.mr_mode() & ofi::FI_MR_ENDPOINT != 0 {
            // SAFETY: both are open, of one domain.
            let bound = unsafe { ofi::fi_mr_bind(self.mr, self.ep.cast(), 0) };
            self.must("fi_mr_bind", bound);
            // SAFETY: the memory is registered.
            let enabled = unsafe { ofi::fi_mr_enable(self.mr) };
            self.must("fi_mr_enable", enabled);
        }
    }

    /// What the provider wants of registered memory.
    fn mr_mode(&self) -> c_int {
        // SAFETY: the info is the library's own, with all its parts.
        let attr = unsafe { (*self.info).domain_attr };
        // SAFETY: as above.
        unsafe { (*attr).mr_mode }
    }

    /// Inserts the endpoint's own address, and looks it up again.
    fn meet(&mut self) {
        let mut name = [0_u8; 256];
        let mut length = name.len();
        // SAFETY: the buffer has as many bytes as `length` says.
        let named = unsafe { ofi::fi_getname(self.ep, name.as_mut_ptr().cast(), &raw mut length) };
        self.must("fi_getname", named);
        let (av, me) = (self.av, &raw mut self.me);
        // SAFETY: the buffer holds one address in the provider's format.
        let inserted =
            unsafe { ofi::fi_av_insert(av, name.as_ptr().cast(), 1, me, 0, ptr::null_mut()) };
        assert_eq!(inserted, 1, "fi_av_insert");
        let mut found = [0_u8; 256];
        let mut found_length = found.len();
        // SAFETY: the vector gave this address, and the buffer has room for it.
        let looked_up = unsafe {
            ofi::fi_av_lookup(
                av,
                self.me,
                found.as_mut_ptr().cast(),
                &raw mut found_length,
            )
        };
        self.must("fi_av_lookup", looked_up);
        assert_eq!(found[..found_length], name[..length]);
    }

    /// The endpoint's address in words.
    pub(crate) fn address(&self) -> String {
        let (mut name, mut text) = ([0_u8; 256], [0_u8; 256]);
        let mut length = name.len();
        let found = name.as_mut_ptr().cast();
        // SAFETY: the vector gave this address, and the buffer has room for it.
        let looked_up = unsafe { ofi::fi_av_lookup(self.av, self.me, found, &raw mut length) };
        self.must("fi_av_lookup", looked_up);
        length = text.len();
        let (name, words) = (name.as_ptr().cast(), text.as_mut_ptr().cast());
        // SAFETY: the address is in the provider's format, and the text has room as it says.
        let written = unsafe { ofi::fi_av_straddr(self.av, name, words, &raw mut length) };
        assert!(!written.is_null(), "fi_av_straddr");
        let words = CStr::from_bytes_until_nul(&text).unwrap();
        words.to_str().unwrap().into()
    }

    /// A word of the memory, read as peers write it.
    pub(crate) fn word(&self, index: usize) -> u64 {
        // SAFETY: a word of the memory; volatile, since the provider writes it behind the compiler.
        unsafe { ptr::read_volatile(&raw const self.memory[index]) }
    }

    /// Where a word is to its peers.
    pub(crate) fn remote(&self, index: usize) -> u64 {
        let virtual_addresses = self.mr_mode() & ofi::FI_MR_VIRT_ADDR != 0;
        let base = if virtual_addresses {
            self.memory.as_ptr().addr()
        } else {
            0
        };
        u64::try_from(base + 8 * index).unwrap()
    }

    /// Where a word is to this process.
    pub(crate) fn local(&mut self, index: usize) -> *mut c_void {
        (&raw mut self.memory[index]).cast()
    }

    pub(crate) fn key(&self) -> u64 {
        // SAFETY: the memory is registered.
        unsafe { ofi::fi_mr_key(self.mr) }
    }

    pub(crate) fn desc(&self) -> *mut c_void {
        // SAFETY: the memory is registered.
        unsafe { ofi::fi_mr_desc(self.mr) }
    }

    pub(crate) fn me(&self) -> ofi::fi_addr_t {
        self.me
    }

    pub(crate) fn context(&mut self) -> *mut c_void {
        (&raw mut *self.context).cast()
    }

    /// Tries until the operation is accepted, driving progress meanwhile.
    pub(crate) fn post(&mut self, name: &str, mut operation: impl FnMut(&mut Self) -> isize) {
        let start = Instant::now();
        loop {
            let result = operation(self);
            if result != -(ofi::FI_EAGAIN as isize) {
                return self.must(name, c_int::try_from(result).unwrap());
            }
            assert!(
                start.elapsed() < DEADLINE,
                "{name} was not accepted in time"
            );
            self.read();
        }
    }

    /// Drives progress until something holds; the completions seen meanwhile.
    pub(crate) fn until(
        &mut self,
        what: &str,
        mut holds: impl FnMut(&Self, usize) -> bool,
    ) -> usize {
        let start = Instant::now();
        let mut completions = 0;
        while !holds(self, completions) {
            completions += self.read();
            assert!(start.elapsed() < DEADLINE, "waited in vain for {what}");
            std::thread::yield_now();
        }
        completions
    }

    /// Completions since the last time; an error is one line and a failed test.
    fn read(&mut self) -> usize {
        let mut entries = [ofi::fi_cq_entry::default(); 8];
        // SAFETY: the queue was opened for entries of this format.
        let read = unsafe { ofi::fi_cq_read(self.cq, entries.as_mut_ptr().cast(), entries.len()) };
        if let Ok(count) = usize::try_from(read) {
            return count;
        }
        assert_ne!(read, -(ofi::FI_EAVAIL as isize), "{}", self.error());
        assert_eq!(read, -(ofi::FI_EAGAIN as isize), "fi_cq_read");
        0
    }

    fn error(&mut self) -> String {
        let mut room = ofi::ErrorEntry::default();
        // SAFETY: the queue is open, and an error waits there.
        let read = unsafe { ofi::fi_cq_readerr(self.cq, &raw mut room, 0) };
        let entry = room.entry;
        let (code, data) = (entry.prov_errno, entry.err_data);
        let none = ptr::null_mut();
        // SAFETY: the queue gave these.
        let words = unsafe { ofi::fi_cq_strerror(self.cq, code, data, none, 0) };
        // SAFETY: a provider's text ends with a zero and stays until the next call.
        let words = (!words.is_null()).then(|| unsafe { CStr::from_ptr(words) });
        let meaning = self.library.fi_strerror(entry.err);
        format!(
            "{read} error: {meaning} ({}), provider: {code} {words:?}",
            entry.err
        )
    }

    fn must(&self, name: &str, result: c_int) {
        assert_eq!(result, 0, "{name}: {}", self.library.fi_strerror(result));
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let objects: [*mut ofi::fid; 6] = [
            self.ep.cast(),
            self.mr.cast(),
            self.av.cast(),
            self.cq.cast(),
            self.domain.cast(),
            self.fabric.cast(),
        ];
        for object in objects {
            // SAFETY: each is open, and closed before what it depends on.
            let closed = unsafe { ofi::fi_close(object) };
            assert_eq!(closed, 0, "fi_close");
        }
        // SAFETY: the info is the library's own, and nothing of it is used again.
        unsafe { self.library.fi_freeinfo(self.info) };
    }
}

/// What the library offers for `tcp;ofi_rxm` with RMA and atomics on 127.0.0.1.
fn info(library: &Library) -> *mut ofi::fi_info {
    let hints = hints(library);
    let mut info = ptr::null_mut();
    let (node, flags) = (c"127.0.0.1".as_ptr(), ofi::FI_SOURCE | ofi::FI_NUMERICHOST);
    let version = library.api_version();
    // SAFETY: the hints are the library's own, and the result can be written.
    let found =
        unsafe { library.fi_getinfo(version, node, ptr::null(), flags, hints, &raw mut info) };
    assert_eq!(found, 0, "fi_getinfo: {}", library.fi_strerror(found));
    // SAFETY: the hints are the library's own, the name in them was allocated by `strdup`.
    unsafe { library.fi_freeinfo(hints) };
    info
}

fn hints(library: &Library) -> *mut ofi::fi_info {
    let hints = library.fi_allocinfo();
    assert!(!hints.is_null());
    // SAFETY: the library made it, with all its parts.
    let info = unsafe { &mut *hints };
    info.caps = ofi::FI_RMA | ofi::FI_ATOMIC;
    info.mode = ofi::FI_CONTEXT | ofi::FI_CONTEXT2;
    // SAFETY: as above.
    let endpoint = unsafe { &mut *info.ep_attr };
    endpoint.type_ = ofi::FI_EP_RDM;
    // SAFETY: as above.
    let fabric = unsafe { &mut *info.fabric_attr };
    // SAFETY: the text ends with a zero.
    fabric.prov_name = unsafe { libc::strdup(c"tcp;ofi_rxm".as_ptr()) };
    // SAFETY: as above.
    let domain = unsafe { &mut *info.domain_attr };
    domain.mr_mode = ofi::FI_MR_LOCAL
        | ofi::FI_MR_VIRT_ADDR
        | ofi::FI_MR_ALLOCATED
        | ofi::FI_MR_PROV_KEY
        | ofi::FI_MR_ENDPOINT;
    domain.threading = ofi::FI_THREAD_DOMAIN;
    domain.control_progress = ofi::FI_PROGRESS_MANUAL;
    domain.data_progress = ofi::FI_PROGRESS_MANUAL;
    hints
}
