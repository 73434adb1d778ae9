use super::*;
use crate::test_pager::over_one_span;
use largesse_pages::base_page;
use largesse_policy::MAX_TRANSFER;
use std::sync::mpsc;

/// While the on-CPU handler never runs, the ordinary handler serves faults that wait; after a few of them, it serves
/// all faults.
#[test]
fn late_fault_is_served_by_the_ordinary_handler() {
    let Some((pager, at)) = over_one_span() else { return };
    let page = base_page();
    let on_cpu = &pager.kernel().on_cpu;
    pager.lock().reclaim_mode.choose_on_cpu();
    on_cpu.want(true);
    on_cpu.running.store(true, Ordering::Relaxed);
    let (watching, (ended, end)) = (Arc::clone(&pager), mpsc::channel());
    let work = move || {
        watch(&watching, &mut Buffer::new(MAX_TRANSFER).unwrap()).unwrap();
        ended.send(()).unwrap();
    };
    pager.kernel().broker().call(|| spawn(c"watch", work)).unwrap();
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
