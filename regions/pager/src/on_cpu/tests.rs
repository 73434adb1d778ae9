use super::*;
use crate::Segments;
use largesse_pages::fault::{OPEN_METHODS, Userfault};
use largesse_pages::{PageKind, Reserved, SPAN, base_page};
use largesse_policy::{MAX_TRANSFER, Policies};
use largesse_store::{Broker, Ranges, StoreError};
use std::sync::mpsc;

/// A store for tests in which no page is ever written.
#[derive(Debug)]
struct Nothing;

impl PageStore for Nothing {
    fn reserve(&self, _: u64, _: u64) -> Result<(), StoreError> {
        Ok(())
    }
    fn read(&self, _: u64, _: &mut [u8]) -> Result<(), StoreError> {
        unreachable!("all pages are new")
    }
    fn write(&self, _: u64, _: &[u8]) -> Result<(), StoreError> {
        unreachable!("all pages fit")
    }
    fn discard(&self, _: u64, _: u64) {}
}

/// While the on-CPU handler never runs, the ordinary handler serves faults that wait; after a few of them, it serves
/// all faults.
#[test]
fn late_fault_is_served_by_the_ordinary_handler() {
    let broker = Broker::start().unwrap();
    let Ok(faults) = broker.call(|| Userfault::open(&OPEN_METHODS)) else {
        #[expect(clippy::disallowed_macros, reason = "absent features are printed as skipped")]
        {
            println!("skipped: no userfaultfd here");
        }
        return;
    };
    // It outlives a thread that waits in it for ever.
    let range = core::mem::ManuallyDrop::new(Reserved::new(SPAN, SPAN).unwrap());
    range.commit(0, SPAN, PageKind::Small).unwrap();
    let (at, page) = (range.start().as_ptr().expose_provenance(), base_page());
    let mut segments = Segments::new();
    segments.add(at, SPAN / page, SPAN / page);
    let kernel = Linux::new(Arc::clone(&broker), faults, segments.clone(), Ranges::new()).unwrap();
    let pager = Pager::new(kernel, Nothing, segments, SPAN / page, Policies::baseline(1)).unwrap();
    let pager = Arc::new(pager);
    let on_cpu = &pager.kernel().on_cpu;
    pager.lock().reclaim_mode.choose_on_cpu();
    on_cpu.want(true);
    on_cpu.running.store(true, Ordering::Relaxed);
    let (watching, (ended, end)) = (Arc::clone(&pager), mpsc::channel());
    let work = move || {
        watch(&watching, &mut Buffer::new(MAX_TRANSFER).unwrap()).unwrap();
        ended.send(()).unwrap();
    };
    broker.call(|| spawn(c"watch", work)).unwrap();
    let (read, words) = mpsc::channel();
    std::thread::spawn(move || {
        for number in 0..4 {
            let word = core::ptr::with_exposed_provenance::<u64>(at + number * page);
            // SAFETY: a page of the range.
            read.send(unsafe { word.read_volatile() }).unwrap();
        }
    });
    for number in 0..4 {
        let word = words.recv_timeout(Duration::from_secs(20));
        assert_eq!(word, Ok(0), "page {number}");
    }
    end.recv_timeout(Duration::from_secs(20)).unwrap();
    assert!(!on_cpu.is_on());
    assert_eq!((pager.counters.get(Count::Faults), pager.counters.get(Count::OnCpu)), (4, 0));
}

#[test]
fn handler_is_for_faults_of_one_thread() {
    let on_cpu = OnCpuHandler::default();
    let met = |threads: &[u32]| {
        (0..2000).for_each(|turn| on_cpu.met_by(threads[turn % threads.len()]));
        on_cpu.is_on()
    };
    assert!(!met(&[7]), "it is not wanted");
    on_cpu.want(true);
    assert!(met(&[7]));
    assert!(!met(&[7, 8]));
    assert!(!met(&[7, 7, 7, 8]));
    assert!(met(&[7; 100].into_iter().chain([8]).collect::<Vec<_>>()), "now and then of another thread");
    on_cpu.want(false);
    assert!(!met(&[7]));
}
