//! What a page calls: it copies a bundle into the memory of this module, steps until there is a report, and reads that as
//! JSON. No function dereferences a pointer: the module owns both buffers, and the page only learns where they are.
#![expect(
    unsafe_code,
    reason = "an exported function needs its name, and the attribute for that counts as unsafe"
)]

use std::cell::RefCell;

use crate::bundle_audit::BundleAudit;

thread_local! {
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static AUDIT: RefCell<Option<BundleAudit>> = const { RefCell::new(None) };
    static OUTPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Where the page writes a bundle of this size.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn input(bytes: usize) -> *mut u8 {
    INPUT.with_borrow_mut(|input| {
        *input = vec![0; bytes];
        input.as_mut_ptr()
    })
}

/// Takes the bundle; 0 if it is none.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn open() -> u32 {
    let audit = BundleAudit::open(INPUT.take());
    let is_open = audit.is_some();
    AUDIT.set(audit);
    u32::from(is_open)
}

/// Continues the audit; 0 when the report is there.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn step() -> u32 {
    AUDIT.with_borrow_mut(|audit| {
        let Some(audit) = audit else { return 0 };
        let has_more = audit.step();
        if let Some(report) = audit.report() {
            OUTPUT.set(serde_json::to_vec(report).unwrap_or_default());
        }
        u32::from(has_more)
    })
}

/// How many objects are hashed, and then how many commits are checked.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn done() -> usize {
    AUDIT.with_borrow(|audit| audit.as_ref().map_or(0, |audit| audit.progress().done))
}

/// How many there are.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn total() -> usize {
    AUDIT.with_borrow(|audit| audit.as_ref().map_or(0, |audit| audit.progress().total))
}

/// Where the report is.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn output() -> *const u8 {
    OUTPUT.with_borrow(|output| output.as_ptr())
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn output_bytes() -> usize {
    OUTPUT.with_borrow(Vec::len)
}
