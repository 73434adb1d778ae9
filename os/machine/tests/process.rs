//! Pins every thread of the process. The test is a program of its own, because it would move the threads of other
//! tests.

use largesse_machine::{Bitmap, pin};
use std::sync::mpsc;

#[test]
fn every_thread_is_pinned_or_none() {
    let (ask, asked) = mpsc::channel::<()>();
    let (send, received) = mpsc::channel();
    let worker = std::thread::spawn(move || {
        asked.into_iter().for_each(|()| send.send(pin::current().unwrap()).unwrap())
    });
    let workers = || {
        ask.send(()).unwrap();
        received.recv().unwrap()
    };
    let before = pin::permitted();
    let first: Bitmap = before.first().into_iter().collect();
    pin::process(&first).unwrap();
    assert_eq!((workers(), pin::current().unwrap()), (first.clone(), first.clone()));
    // A refused request changes nothing.
    let wrong: Bitmap = [8000].into_iter().collect();
    assert!(matches!(pin::process(&wrong), Err(pin::PinError::NoSuchCpu { .. })));
    assert_eq!(workers(), first);
    pin::process(&before).unwrap();
    assert_eq!((workers(), pin::current().unwrap()), (before.clone(), before));
    drop(ask);
    worker.join().unwrap();
}
