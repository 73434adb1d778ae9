//! The first blocks of a heap that starts on small pages, and what is recorded once the kernel has made them large.

use largesse_arena::{NearMemory, Retention};
use largesse_malloc::{DataAlign, Fill, LargeBlockHeap, LargeHeapSettings};
use largesse_pages::{PageKind, Placement, Reserved, SPAN};
use largesse_report::BlockKind;

const SPANS: usize = 8;

#[test]
fn first_blocks_are_small_until_noted() {
    let range = Reserved::new(SPANS * SPAN, SPAN).unwrap();
    let near = NearMemory::new(range, PageKind::Thp, Placement::FirstTouch, false);
    let settings =
        LargeHeapSettings { header: 0, data: DataAlign::Lines, retention: Retention { share: 0, floor: 0 } };
    let heap = LargeBlockHeap::new(Box::leak(Box::new(near)), settings).unwrap();
    heap.start_on_small_pages(2);
    let sizes = [SPAN / 2, SPAN / 4, SPAN];
    let blocks = sizes.map(|size| heap.allocate(size, 16, Fill::Any).unwrap().start.as_ptr().addr() as u64);
    let later = heap.allocate(2 * SPAN, SPAN, Fill::Any).unwrap().start.as_ptr().addr() as u64;
    let kinds = || {
        let mut kinds = [0; 4];
        heap.each_block(|record| {
            let number = blocks.iter().chain([&later]).position(|&block| block == record.address).unwrap();
            kinds[number] = record.kind;
        });
        kinds
    };
    let (small, large) = (BlockKind::Small as u32, BlockKind::Thp as u32);
    assert_eq!(kinds(), [small, small, small, large]);

    heap.became_large(0);
    assert_eq!(kinds(), [large, large, large, large], "the third block begins in the first span");
    assert_eq!(heap.small_span_from(0), Some(1), "and is on small pages in the second one");
    heap.became_large(1);
    assert_eq!(heap.small_span_from(0), None);
    heap.free(usize::try_from(blocks[0]).unwrap()).unwrap();
}
