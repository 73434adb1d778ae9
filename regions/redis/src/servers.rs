//! The servers behind one address. Requests are sent to the primary of a hash slot, and repeated until they succeed or
//! their time limit has passed.

use crate::failure::Failure;
use crate::info::Info;
use crate::layout::Layout;
use crate::link::{Link, Requests};
use crate::target::{Address, Target};
use redis::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Pause before a failed request is repeated for the first time. Each further pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Whether the effect of a request must last. A request may be sent twice in either case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The request changes nothing that is needed: it may be executed late, or its effect may be lost.
    Transient,
    /// Replicas must have the change, too, and it must not be executed after a later request.
    Durable,
}

/// The attempts that were made for a request: since when, for how long, and on which connections.
pub(crate) struct Attempts {
    /// When the first attempt began.
    pub(crate) began: Instant,
    /// Time since `began` after which the request fails.
    pub(crate) timeout: Duration,
    /// Connections on which a write of the request got no answer, so that the server may still execute it.
    pub(crate) unanswered: Vec<(Address, i64)>,
}

impl Attempts {
    /// Makes the record of a request that was not tried yet, and that fails after `timeout`.
    pub(crate) fn within(timeout: Duration) -> Attempts {
        Attempts { began: Instant::now(), timeout, unanswered: Vec::new() }
    }
}

/// A server, or the servers of a cluster, with the connections to them.
pub(crate) struct Servers {
    target: Target,
    layout: Mutex<Arc<Layout>>,
    /// Open links that no exchange uses now, by server.
    idle: Mutex<HashMap<Address, Vec<Link>>>,
}

impl Servers {
    /// Connects to the server at the target's address. Does not retry, so that a wrong address is reported at once.
    pub(crate) fn open(target: Target) -> Result<Servers, Failure> {
        let mut link = Link::open(&target, &target.address).map_err(|failure| match failure {
            Failure::NoAnswer(why) => Failure::NoAnswer(format!(
                "{why}. Does a server run there, and does it expect redis:// or rediss:// (TLS)?"
            )),
            other => other,
        })?;
        let layout = Layout::ask(&mut link, &target.address, &target)?;
        Ok(Servers { target, layout: Mutex::new(Arc::new(layout)), idle: Mutex::default() })
    }

    pub(crate) const fn target(&self) -> &Target {
        &self.target
    }

    pub(crate) fn layout(&self) -> Arc<Layout> {
        Arc::clone(&lock(&self.layout))
    }

    /// Sends requests to the primary of a hash slot until it answers all of them without an error, or their time limit
    /// has passed.
    pub(crate) fn run(
        &self,
        slot: u16,
        requests: &Requests,
        effect: Effect,
        Attempts { began, timeout, mut unanswered }: Attempts,
    ) -> Result<Vec<Value>, String> {
        let deadline = began + timeout;
        let mut pause = FIRST_PAUSE;
        let mut asked = None;
        loop {
            let failure = match self.attempt(slot, requests, effect, asked.take(), &mut unanswered) {
                Ok(answers) => return Ok(answers),
                Err(failure) => failure,
            };
            if matches!(failure, Failure::Permanent(_)) {
                return Err(failure.why());
            }
            if Instant::now() >= deadline {
                let waited = timeout.as_secs_f32();
                return Err(format!("{} (for {waited:.0} s)", failure.why()));
            }
            if let Failure::Ask(address) = failure {
                asked = Some(address);
                continue;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
            self.update_layout(slot);
        }
    }

    fn attempt(
        &self,
        slot: u16,
        requests: &Requests,
        effect: Effect,
        asked: Option<Address>,
        unanswered: &mut Vec<(Address, i64)>,
    ) -> Result<Vec<Value>, Failure> {
        let layout = self.layout();
        let shard = layout.shard(slot).ok_or_else(|| Failure::Retry("a slot without a server".into()))?;
        let mut before = Requests::default();
        if asked.is_some() {
            before.add(&redis::cmd("ASKING"));
        }
        let mut after = Requests::default();
        let replicas = self.confirmations(slot, effect);
        if replicas > 0 {
            after.add(&self.wait(replicas));
        }
        let address = asked.as_ref().unwrap_or(&shard.primary);
        let mut link = self.link(address)?;
        self.fence(&mut link, address, unanswered)?;
        match link.exchange(&[&before, requests, &after], &self.target) {
            Err(silent @ Failure::NoAnswer(_)) => {
                if effect == Effect::Durable {
                    unanswered.push((address.clone(), link.number()));
                }
                self.forget_idle(address);
                Err(silent)
            }
            outcome => {
                self.give_back(address, link);
                let mut answers = outcome?;
                if let Some(failure) = self.unconfirmed(&mut answers, replicas) {
                    return Err(failure);
                }
                if asked.is_some() {
                    answers.remove(0);
                }
                Ok(answers)
            }
        }
    }

    /// Returns the number of replicas of a hash slot that must confirm a request with this effect.
    pub(crate) fn confirmations(&self, slot: u16, effect: Effect) -> u32 {
        let has_replica = || self.layout().shard(slot).is_some_and(|shard| !shard.replicas.is_empty());
        match effect {
            Effect::Durable => self.target.replicas.unwrap_or_else(|| u32::from(has_replica())),
            Effect::Transient => 0,
        }
    }

    /// Returns the command (`WAIT`) that waits until `replicas` replicas have confirmed all earlier commands of its
    /// connection.
    pub(crate) fn wait(&self, replicas: u32) -> redis::Cmd {
        let mut wait = redis::cmd("WAIT");
        wait.arg(replicas).arg(self.target.exchange().as_millis() / 2);
        wait
    }

    /// Removes the answer to [`wait`](Servers::wait) from `answers`, if `replicas` is not 0. Returns a failure if fewer
    /// replicas have confirmed.
    pub(crate) fn unconfirmed(&self, answers: &mut Vec<Value>, replicas: u32) -> Option<Failure> {
        let confirmed =
            replicas == 0 || matches!(answers.pop(), Some(Value::Int(have)) if have >= replicas.into());
        (!confirmed).then(|| Failure::Retry("no replica has confirmed the write".into()))
    }

    /// Ends the connections to `address` on which a write got no answer, so that it cannot overwrite a newer page
    /// later. If the server does not permit this and an old page is read later, the pager's checksums detect it.
    fn fence(
        &self,
        link: &mut Link,
        address: &Address,
        unanswered: &mut Vec<(Address, i64)>,
    ) -> Result<(), Failure> {
        while let Some(place) = unanswered.iter().position(|(at, _)| at == address) {
            let kill = Requests::one(redis::cmd("CLIENT").arg("KILL").arg("ID").arg(unanswered[place].1));
            if let Err(silent @ Failure::NoAnswer(_)) = link.exchange(&[&kill], &self.target) {
                return Err(silent);
            }
            unanswered.swap_remove(place);
        }
        Ok(())
    }

    /// Takes an idle link to a server, or opens one.
    pub(crate) fn link(&self, address: &Address) -> Result<Link, Failure> {
        let idle = lock(&self.idle).get_mut(address).and_then(Vec::pop);
        idle.map_or_else(|| Link::open(&self.target, address), Ok)
    }

    /// Gives back a link that awaits no answers.
    pub(crate) fn give_back(&self, address: &Address, link: Link) {
        lock(&self.idle).entry(address.clone()).or_default().push(link);
    }

    /// Closes the idle links to a server, since one of them was lost.
    pub(crate) fn forget_idle(&self, address: &Address) {
        lock(&self.idle).remove(address);
    }

    /// Asks the servers for the layout, one after the other, until one answers. The primary of `slot` is asked last,
    /// because a request to it has just failed. The known layout is kept if no server has one that is at least as new.
    pub(crate) fn update_layout(&self, slot: u16) {
        let known = self.layout();
        let mut addresses: Vec<&Address> =
            std::iter::once(&self.target.address).chain(known.servers()).collect();
        let primary = known.shard(slot).map(|shard| &shard.primary);
        addresses.sort_by_key(|&address| (Some(address) == primary, address));
        addresses.dedup();
        for address in addresses {
            let asked = self.link(address).and_then(|mut link| {
                let layout = Layout::ask(&mut link, address, &self.target)?;
                self.give_back(address, link);
                Ok(layout)
            });
            if let Some(layout) = asked.ok().filter(|layout| layout.epoch >= known.epoch) {
                *lock(&self.layout) = Arc::new(layout);
                return;
            }
        }
    }

    /// Asks the primary of a hash slot for its state.
    pub(crate) fn info(&self, slot: u16) -> Result<Info, String> {
        let request = Requests::one(&redis::cmd("INFO"));
        let answers = self.run(slot, &request, Effect::Transient, Attempts::within(self.target.timeout))?;
        Info::among(&answers).map_err(Failure::why)
    }
}

/// Locks a mutex, even if a thread has panicked while it held it: the data are consistent between any two steps.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
