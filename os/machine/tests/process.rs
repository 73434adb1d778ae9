//! Every thread of the process: a test of its own, since it moves those of other tests.

use largesse_machine::{Bitmap, pin};
use std::sync::mpsc;

#[test]
fn every_thread_is_kept_or_none() {
    let (ask, asked) = mpsc::channel::<()>();
    let (tell, told) = mpsc::channel();
    let worker = std::thread::spawn(move || {
        asked.into_iter().for_each(|()| tell.send(pin::current().unwrap()).unwrap())
    });
    let workers = || {
        ask.send(()).unwrap();
        told.recv().unwrap()
    };
    let before = pin::permitted();
    let first: Bitmap = before.first().into_iter().collect();
    pin::process(&first).unwrap();
    assert_eq!((workers(), pin::current().unwrap()), (first.clone(), first.clone()));
    // Refused, and everything is as before.
    let wrong: Bitmap = [8000].into_iter().collect();
    assert!(matches!(pin::process(&wrong), Err(pin::PinError::NoSuchCpu { .. })));
    assert_eq!(workers(), first);
    pin::process(&before).unwrap();
    assert_eq!((workers(), pin::current().unwrap()), (before.clone(), before));
    drop(ask);
    worker.join().unwrap();
}
