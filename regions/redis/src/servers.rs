//! The servers behind one address: whom to ask, again if need be, until patience ends.

use crate::failure::Failure;
use crate::info::Info;
use crate::layout::Layout;
use crate::link::{Link, Requests};
use crate::target::{Address, Target};
use redis::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// What a request leaves behind. Any may be sent twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Nothing that matters: whether it is carried out late, or lost.
    Passing,
    /// Replicas must have it, too.
    Lasting,
}

pub(crate) struct Servers {
    target: Target,
    layout: Mutex<Arc<Layout>>,
    /// Links that nobody uses at the moment.
    idle: Mutex<HashMap<Address, Vec<Link>>>,
}

impl Servers {
    /// Looks once: who asks for a server that is not there wants to know now.
    pub(crate) fn open(target: Target) -> Result<Servers, Failure> {
        let mut link = Link::open(&target, &target.address).map_err(|failure| match failure {
            Failure::Silent(why) => {
                Failure::Silent(format!("{why}. Is a server there, and does it want redis:// or rediss://?"))
            }
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

    /// Sends requests to the primary of a slot until it answers all of them without error.
    pub(crate) fn run(
        &self,
        slot: u16,
        requests: &Requests,
        effect: Effect,
        patience: Duration,
    ) -> Result<Vec<Value>, String> {
        let deadline = Instant::now() + patience;
        let mut pause = FIRST_PAUSE;
        let mut asked = None;
        // Connections on which a write may still be under way.
        let mut unsure = Vec::new();
        loop {
            let failure = match self.attempt(slot, requests, effect, asked.take(), &mut unsure) {
                Ok(answers) => return Ok(answers),
                Err(failure) => failure,
            };
            if matches!(failure, Failure::Refused(_)) {
                return Err(failure.why());
            }
            if Instant::now() >= deadline {
                let waited = patience.as_secs_f32();
                return Err(format!("{} (for {waited:.0} s)", failure.why()));
            }
            if let Failure::Ask(address) = failure {
                asked = Some(address);
                continue;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
            self.look_again(slot);
        }
    }

    fn attempt(
        &self,
        slot: u16,
        requests: &Requests,
        effect: Effect,
        asked: Option<Address>,
        unsure: &mut Vec<(Address, i64)>,
    ) -> Result<Vec<Value>, Failure> {
        let layout = self.layout();
        let shard = layout.shard(slot).ok_or_else(|| Failure::Later("a slot without a server".into()))?;
        let mut before = Requests::default();
        if asked.is_some() {
            before.add(&redis::cmd("ASKING"));
        }
        let mut after = Requests::default();
        let replicas = match effect {
            Effect::Lasting => self.target.replicas.unwrap_or_else(|| u32::from(!shard.replicas.is_empty())),
            Effect::Passing => 0,
        };
        if replicas > 0 {
            after.add(redis::cmd("WAIT").arg(replicas).arg(self.target.exchange().as_millis() / 2));
        }
        let address = asked.as_ref().unwrap_or(&shard.primary);
        let mut link = self.link(address)?;
        self.fence(&mut link, address, unsure)?;
        match link.exchange(&[&before, requests, &after], &self.target) {
            Err(silent @ Failure::Silent(_)) => {
                if effect == Effect::Lasting {
                    unsure.push((address.clone(), link.number()));
                }
                lock(&self.idle).remove(address);
                Err(silent)
            }
            outcome => {
                lock(&self.idle).entry(address.clone()).or_default().push(link);
                let mut answers = outcome?;
                if replicas > 0 && !matches!(answers.pop(), Some(Value::Int(have)) if have >= replicas.into())
                {
                    return Err(Failure::Later("no replica has what was written".into()));
                }
                if asked.is_some() {
                    answers.remove(0);
                }
                Ok(answers)
            }
        }
    }

    /// Ends connections on which a write got no answer: it must not be carried out later, over a newer
    /// one. Where that is not permitted, the pager's checksums find an old page.
    fn fence(
        &self,
        link: &mut Link,
        address: &Address,
        unsure: &mut Vec<(Address, i64)>,
    ) -> Result<(), Failure> {
        while let Some(place) = unsure.iter().position(|(at, _)| at == address) {
            let kill = Requests::one(redis::cmd("CLIENT").arg("KILL").arg("ID").arg(unsure[place].1));
            if let Err(silent @ Failure::Silent(_)) = link.exchange(&[&kill], &self.target) {
                return Err(silent);
            }
            unsure.swap_remove(place);
        }
        Ok(())
    }

    fn link(&self, address: &Address) -> Result<Link, Failure> {
        let idle = lock(&self.idle).get_mut(address).and_then(Vec::pop);
        idle.map_or_else(|| Link::open(&self.target, address), Ok)
    }

    /// Asks who has which slots, the primary of `slot` last. What is known stays if nobody knows better.
    pub(crate) fn look_again(&self, slot: u16) {
        let known = self.layout();
        let mut addresses: Vec<&Address> =
            std::iter::once(&self.target.address).chain(known.servers()).collect();
        let primary = known.shard(slot).map(|shard| &shard.primary);
        addresses.sort_by_key(|&address| (Some(address) == primary, address));
        addresses.dedup();
        for address in addresses {
            let asked = self.link(address).and_then(|mut link| {
                let layout = Layout::ask(&mut link, address, &self.target)?;
                lock(&self.idle).entry(address.clone()).or_default().push(link);
                Ok(layout)
            });
            if let Some(layout) = asked.ok().filter(|layout| layout.epoch >= known.epoch) {
                *lock(&self.layout) = Arc::new(layout);
                return;
            }
        }
    }

    /// What the primary of a slot says about itself.
    pub(crate) fn info(&self, slot: u16) -> Result<Info, String> {
        let request = Requests::one(&redis::cmd("INFO"));
        let answers = self.run(slot, &request, Effect::Passing, self.target.patience)?;
        Info::among(&answers).map_err(Failure::why)
    }
}

/// Nothing is left half done under a lock.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
