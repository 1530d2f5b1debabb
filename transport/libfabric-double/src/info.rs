//! What is offered for what is asked.

use core::ffi::{c_char, c_int};
use std::ffi::{CStr, CString};
use std::ptr;

use libfabric_sys as sys;

use crate::personality::Personality;

/// What hints ask for, as far as it matters here.
#[derive(Clone, Debug)]
pub(crate) struct Hints {
    pub(crate) provider: Option<Vec<u8>>,
    caps: u64,
    mode: u64,
    kind: sys::fi_ep_type,
    order: u64,
    memory: c_int,
    /// Whether an address of the internet was named.
    pub(crate) node: bool,
}

impl Hints {
    /// # Safety
    /// `info` is null or one of this library's making.
    pub(crate) unsafe fn of(info: *const sys::fi_info, node: bool) -> Self {
        let mut hints = Self {
            provider: None,
            caps: 0,
            mode: u64::MAX,
            kind: sys::FI_EP_UNSPEC,
            order: 0,
            memory: ACCEPT_ALL,
            node,
        };
        if info.is_null() {
            return hints;
        }
        // SAFETY: the caller's promise.
        let info = unsafe { &*info };
        (hints.caps, hints.mode) = (info.caps, info.mode);
        // SAFETY: an info of this library has all attributes.
        let (endpoint, transmit) = (unsafe { &*info.ep_attr }, info.tx_attr);
        hints.kind = endpoint.type_;
        // SAFETY: as above.
        hints.order = unsafe { (*transmit).msg_order };
        // SAFETY: as above.
        hints.memory = unsafe { (*info.domain_attr).mr_mode };
        // SAFETY: as above.
        let name = unsafe { (*info.fabric_attr).prov_name };
        if !name.is_null() {
            // SAFETY: a text that ends in zero.
            hints.provider = Some(unsafe { CStr::from_ptr(name) }.to_bytes().to_vec());
        }
        hints
    }

    /// Whether this provider can do what is asked.
    pub(crate) fn fit(&self, of: &Personality) -> bool {
        let named = self.provider.as_ref();
        let kind = self.kind == sys::FI_EP_UNSPEC || self.kind == of.kind;
        let internet = of.address_format == sys::FI_SOCKADDR_IN;
        named.is_none_or(|name| name == of.name.as_bytes())
            && kind
            && (internet || !self.node)
            && self.caps & !of.caps == 0
            && of.mode & !self.mode == 0
            && self.order & !of.order == 0
            && self.memory_of(of).is_some()
    }

    /// The memory mode that comes out; `None` if the program cannot meet it.
    fn memory_of(&self, of: &Personality) -> Option<c_int> {
        let basic = sys::FI_MR_VIRT_ADDR | sys::FI_MR_ALLOCATED | sys::FI_MR_PROV_KEY;
        match self.memory {
            BASIC => (of.memory == basic).then_some(BASIC),
            SCALABLE => (of.memory == 0).then_some(SCALABLE),
            offered => (of.memory & !offered == 0).then_some(of.memory),
        }
    }
}

/// A provider's info for hints that it fits.
pub(crate) fn offer(of: &Personality, hints: &Hints, version: u32) -> *mut sys::fi_info {
    let order = if hints.order == 0 {
        of.order
    } else {
        hints.order
    };
    let transmit = sys::fi_tx_attr {
        caps: of.caps,
        mode: of.mode,
        msg_order: order,
        inject_size: of.inject_bytes,
        size: of.queue,
        iov_limit: 1,
        rma_iov_limit: 1,
        ..Default::default()
    };
    let receive = sys::fi_rx_attr {
        caps: of.caps,
        msg_order: order,
        ..Default::default()
    };
    let endpoint = sys::fi_ep_attr {
        type_: of.kind,
        max_msg_size: of.most_bytes,
        max_order_raw_size: of.order_bytes,
        max_order_waw_size: of.order_bytes,
        tx_ctx_cnt: 1,
        rx_ctx_cnt: 1,
        ..Default::default()
    };
    let domain = sys::fi_domain_attr {
        name: text("double"),
        threading: sys::FI_THREAD_DOMAIN,
        control_progress: sys::FI_PROGRESS_MANUAL,
        data_progress: sys::FI_PROGRESS_MANUAL,
        resource_mgmt: sys::FI_RM_ENABLED,
        av_type: sys::FI_AV_TABLE,
        mr_mode: hints.memory_of(of).unwrap_or(of.memory),
        mr_key_size: of.key_bytes,
        ..Default::default()
    };
    let fabric = sys::fi_fabric_attr {
        name: text("double"),
        prov_name: text(of.name),
        prov_version: VERSION,
        api_version: version,
        ..Default::default()
    };
    boxed(sys::fi_info {
        caps: of.caps,
        mode: of.mode,
        addr_format: of.address_format,
        tx_attr: boxed(transmit),
        rx_attr: boxed(receive),
        ep_attr: boxed(endpoint),
        domain_attr: boxed(domain),
        fabric_attr: boxed(fabric),
        ..Default::default()
    })
}

/// An info with empty attributes.
pub(crate) fn empty() -> *mut sys::fi_info {
    boxed(sys::fi_info {
        tx_attr: boxed(sys::fi_tx_attr::default()),
        rx_attr: boxed(sys::fi_rx_attr::default()),
        ep_attr: boxed(sys::fi_ep_attr::default()),
        domain_attr: boxed(sys::fi_domain_attr::default()),
        fabric_attr: boxed(sys::fi_fabric_attr::default()),
        ..Default::default()
    })
}

/// A copy of one info with all that it points at.
///
/// # Safety
/// It was made here.
pub(crate) unsafe fn copy(info: *const sys::fi_info) -> *mut sys::fi_info {
    // SAFETY: the caller's promise.
    let from = unsafe { *info };
    // SAFETY: an info has all attributes.
    let mut domain = unsafe { *from.domain_attr };
    // SAFETY: as above.
    let mut fabric = unsafe { *from.fabric_attr };
    for name in [&mut domain.name, &mut fabric.name, &mut fabric.prov_name] {
        // SAFETY: null or a text that ends in zero.
        *name = unsafe { again(*name) };
    }
    // SAFETY: as above.
    let transmit = unsafe { *from.tx_attr };
    // SAFETY: as above.
    let receive = unsafe { *from.rx_attr };
    // SAFETY: as above.
    let endpoint = unsafe { *from.ep_attr };
    boxed(sys::fi_info {
        next: ptr::null_mut(),
        tx_attr: boxed(transmit),
        rx_attr: boxed(receive),
        ep_attr: boxed(endpoint),
        domain_attr: boxed(domain),
        fabric_attr: boxed(fabric),
        ..from
    })
}

/// Frees one info with all that it points at, and yields the next.
///
/// # Safety
/// It was made here, and is not used again.
pub(crate) unsafe fn free(info: *mut sys::fi_info) -> *mut sys::fi_info {
    // SAFETY: the caller's promise: made by `boxed`.
    let info = unsafe { Box::from_raw(info) };
    // SAFETY: as above, as are all attributes.
    let domain = unsafe { Box::from_raw(info.domain_attr) };
    // SAFETY: as above.
    let fabric = unsafe { Box::from_raw(info.fabric_attr) };
    // SAFETY: as above.
    drop(unsafe { Box::from_raw(info.tx_attr) });
    // SAFETY: as above.
    drop(unsafe { Box::from_raw(info.rx_attr) });
    // SAFETY: as above.
    drop(unsafe { Box::from_raw(info.ep_attr) });
    for name in [domain.name, fabric.name, fabric.prov_name] {
        // SAFETY: null, or allocated by `malloc` as names in infos are.
        unsafe { libc::free(name.cast()) };
    }
    info.next
}

fn boxed<T>(value: T) -> *mut T {
    Box::into_raw(Box::new(value))
}

/// A text as infos hold it.
fn text(words: &str) -> *mut c_char {
    let words = CString::new(words).expect("names hold no zero byte");
    // SAFETY: a text that ends in zero.
    unsafe { again(words.as_ptr()) }
}

/// # Safety
/// The text is null or ends in zero.
unsafe fn again(words: *const c_char) -> *mut c_char {
    if words.is_null() {
        return ptr::null_mut();
    }
    // SAFETY: the caller's promise.
    unsafe { libc::strdup(words) }
}

/// Of the providers.
const VERSION: u32 = sys::version(117, 0);

const BASIC: c_int = sys::FI_MR_BASIC.cast_signed();
const SCALABLE: c_int = sys::FI_MR_SCALABLE.cast_signed();
const ACCEPT_ALL: c_int = sys::FI_MR_LOCAL
    | sys::FI_MR_VIRT_ADDR
    | sys::FI_MR_ALLOCATED
    | sys::FI_MR_PROV_KEY
    | sys::FI_MR_ENDPOINT;
