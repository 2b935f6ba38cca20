//! Dual-CAN: a second CAN beside the first, whose nodes are what is left of machines that run jobs.
//!
//! ```text
//! a machine starts a job      … through the Primary …     owner of the door     in the Secondary
//!     │── Knock ────────────────────▶│── Knock ─────────────────▶│                     │
//!     │◀──────────────────────────────────────────── Enter(who) ─│                     │
//!     │── Join, and all else as in any CAN ──────────────────────────────────────────▶│
//! who owns the door's point there ── Hold ──▶ … ── Hold ────────▶│
//! ```
//!
//! Paper: Lee, Keleher, Sussman, 2010 (Max-node, Residue-node, Primary and Secondary CAN).
//!
//! A machine is in the Secondary while it runs something and has something left. A start or an end of a job moves its point
//! there, and nothing in the Primary: a zone around the new point is claimed first, then the old one is handed on, so that no
//! cell is without an owner meanwhile. Whoever knows nobody there asks a neighbour in the Primary that seems to be in, or
//! at the *door*: a point whose owner in the Primary is told by its owner in the Secondary. If nobody is in, the first who
//! knocks gets all of the space. Two Secondaries that grew apart have two owners of the door's point: these hear of each
//! other there, and the claims with less right give way.

use minicbor::{CborLen, Decode, Encode};
use rand::RngExt;
use shoal_model::{NodeId, Resources, Time};

use super::join::HOPS_MAX;
use super::zone::{DIMENSIONS_MAX, Point};
use super::{Can, Config, Hop, Message, Setup, Timer, Vitals};
use crate::protocol::{self, Ctx, Hosts, Input, Layer, Never, Protocol};

/// Where the door is, in both CANs.
pub const DOOR: Point = [0; DIMENSIONS_MAX];

/// What nodes say to each other because of the Secondary.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub enum SecondaryMessage {
    /// In the Secondary, as in any CAN.
    #[n(0)]
    Zones(#[n(0)] Message),
    /// Who is in there? Goes through the Primary to the owner of the door, or to somebody on the way who is in. Answered by
    /// [`SecondaryMessage::Enter`].
    #[n(1)]
    Knock {
        /// Who asks.
        #[n(0)]
        newcomer: NodeId,
        /// How often this was passed on.
        #[n(1)]
        hops: u16,
    },
    /// This one is in; or nobody: then all of the space is yours.
    #[n(2)]
    Enter(#[n(0)] Option<NodeId>),
    /// Goes through the Primary to the owner of the door: this one owns its point in the Secondary, or does no longer and
    /// nobody else is in.
    #[n(3)]
    Hold {
        /// Who.
        #[n(0)]
        node: NodeId,
        /// Whether it does.
        #[n(1)]
        open: bool,
        /// How often this was passed on.
        #[n(2)]
        hops: u16,
    },
}

/// A short message.
const SHORT_BYTES: u64 = 64;

impl protocol::Message for SecondaryMessage {
    const KINDS: &'static [&'static str] = &[
        "secondary_join",
        "secondary_welcome",
        "secondary_taken",
        "secondary_update",
        "secondary_grant",
        "secondary_tie",
        "secondary_tied",
        "secondary_untie",
        "secondary_leap",
        "secondary_landed",
        "secondary_knock",
        "secondary_enter",
        "secondary_hold",
    ];

    fn kind(&self) -> usize {
        const OWN: usize = <Message as protocol::Message>::KINDS.len();
        match self {
            SecondaryMessage::Zones(message) => message.kind(),
            SecondaryMessage::Knock { .. } => OWN,
            SecondaryMessage::Enter(_) => OWN + 1,
            SecondaryMessage::Hold { .. } => OWN + 2,
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            SecondaryMessage::Zones(message) => message.bytes(),
            SecondaryMessage::Knock { .. } | SecondaryMessage::Enter(_) | SecondaryMessage::Hold { .. } => {
                SHORT_BYTES
            }
        }
    }

    fn mentions(&self, mention: &mut dyn FnMut(NodeId)) {
        match self {
            SecondaryMessage::Zones(message) => message.mentions(mention),
            SecondaryMessage::Knock { newcomer, .. } => mention(*newcomer),
            SecondaryMessage::Enter(who) => who.iter().for_each(|&node| mention(node)),
            SecondaryMessage::Hold { node, .. } => mention(*node),
        }
    }
}

/// A node's part of the Secondary.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Secondary {
    can: Can,
    /// What others were last told to be left.
    told: Option<Resources>,
    /// How often it has looked for somebody who is in, in a row.
    sought: u32,
    /// Whether it has knocked and waits for an answer.
    knocked: bool,
    /// Whether it owned the door's point when it last looked.
    holds: bool,
    /// As the owner of the door in the Primary: who owns it in the Secondary, and until when that is believed.
    holder: Option<(NodeId, Time)>,
}

impl Layer for Secondary {
    type Command = Never;
    type Message = SecondaryMessage;
    type Timer = Timer;
    type Record = Never;
    type Action = Never;
    type Outcome = Never;
    type Event = Never;
}

impl Secondary {
    /// Nothing runs yet, and so nothing is in.
    pub fn new(config: &Config, me: NodeId) -> Secondary {
        let mut can = Can::restore(&Setup { config: *config, point: None }, me, std::iter::empty());
        can.leaving = true;
        can.second = true;
        Secondary { can, told: None, sought: 0, knocked: false, holds: false, holder: None }
    }

    /// The CAN of what is left, as this node knows it.
    pub fn can(&self) -> &Can {
        &self.can
    }

    /// Whether this node has a zone there.
    pub fn is_in(&self) -> bool {
        !self.can.leaving && !self.can.claims.is_empty()
    }

    /// As the owner of the door in the Primary: who owns it in the Secondary.
    pub fn holder(&self, now: Time) -> Option<NodeId> {
        self.holder.filter(|(_, until)| *until > now).map(|(node, _)| node)
    }

    /// Takes one input, with a look at the Primary.
    pub fn handle(&mut self, input: Input<Self>, primary: &Can, ctx: &mut Ctx<'_, Self>) {
        match input {
            Input::Boot => self.tell_can(|can, ctx| can.handle(Input::Boot, ctx), ctx),
            Input::Command(never) | Input::Done(never) => match never {},
            Input::Message { from, message } => match message {
                // Nothing is tied to what is left, and no ways lead there for long.
                SecondaryMessage::Zones(
                    Message::Tie(..)
                    | Message::Tied(_)
                    | Message::Untie(_)
                    | Message::Leap { .. }
                    | Message::Landed { .. },
                ) => {}
                SecondaryMessage::Zones(message) => {
                    self.tell_can(|can, ctx| can.handle(Input::Message { from, message }, ctx), ctx);
                }
                SecondaryMessage::Knock { newcomer, hops } => self.on_knock(newcomer, hops, primary, ctx),
                SecondaryMessage::Enter(who) => self.on_enter(who, ctx),
                SecondaryMessage::Hold { node, open, hops } => self.on_hold(node, open, hops, primary, ctx),
            },
            Input::Timer(Timer::Enter) => {
                let lost = self.is_lost();
                if lost {
                    self.can.introducer = None;
                }
                self.tell_can(|can, ctx| can.handle(Input::Timer(Timer::Enter), ctx), ctx);
                if lost {
                    self.seek(primary, ctx);
                }
            }
            Input::Timer(timer) => {
                self.tell_can(|can, ctx| can.handle(Input::Timer(timer), ctx), ctx);
                if timer == Timer::Beat {
                    self.holds = false;
                }
            }
        }
        self.tell_door(primary, ctx);
    }

    /// What is left has changed, or how much waits: the point moves, and only it.
    pub fn follow(&mut self, vitals: Vitals, primary: &Can, ctx: &mut Ctx<'_, Self>) {
        let point = primary.residue_of(&vitals);
        let left = point.map(|_| vitals.residual.clone());
        self.can.describe(vitals);
        if left == self.told {
            return;
        }
        self.told = left;
        match point {
            Some(point) => {
                self.tell_can(|can, ctx| can.lie_at(point, ctx), ctx);
                if self.is_lost() {
                    self.sought = 0;
                    self.seek(primary, ctx);
                }
            }
            None => {
                // Who has knocked may be believed to be in already.
                if self.knocked || self.owns_door() && self.can.degree() == 0 {
                    self.on_hold(ctx.me, false, 0, primary, ctx);
                }
                self.knocked = false;
                self.tell_can(Can::leave, ctx);
            }
        }
        self.tell_door(primary, ctx);
    }

    fn tell_can(&mut self, tell: impl FnOnce(&mut Can, &mut Ctx<'_, Can>), ctx: &mut Ctx<'_, Self>) {
        let can = &mut self.can;
        // Who falls silent, and that all is handed over, is nobody's business but the zones'.
        let _ = ctx.layer(|ctx| tell(can, ctx));
    }

    /// Whether it wants a zone, and knows nobody who could give it one.
    fn is_lost(&self) -> bool {
        !self.can.leaving && !self.can.has_home() && self.can.degree() == 0
    }

    /// Looks for somebody who is in: among the neighbours in the Primary, and then at the door.
    fn seek(&mut self, primary: &Can, ctx: &mut Ctx<'_, Self>) {
        self.sought = self.sought.saturating_add(1);
        if self.sought % 2 == 1
            && let Some(through) = likely_in(primary, ctx)
        {
            self.tell_can(|can, ctx| can.enter_through(through, ctx), ctx);
            return;
        }
        self.knocked = true;
        self.on_knock(ctx.me, 0, primary, ctx);
    }

    fn on_knock(&mut self, newcomer: NodeId, hops: u16, primary: &Can, ctx: &mut Ctx<'_, Self>) {
        if newcomer != ctx.me && self.is_in() {
            ctx.send(newcomer, SecondaryMessage::Enter(Some(ctx.me)));
            return;
        }
        match primary.next_hop(&DOOR) {
            Hop::Here => {
                let who = self.holder(ctx.now).filter(|&node| node != newcomer);
                if who.is_none() {
                    self.holder = Some((newcomer, ctx.now + primary.config().silence()));
                }
                ctx.send(newcomer, SecondaryMessage::Enter(who));
            }
            Hop::To(next) if hops < HOPS_MAX => {
                ctx.send(next, SecondaryMessage::Knock { newcomer, hops: hops + 1 });
            }
            Hop::To(_) | Hop::Stuck => {}
        }
    }

    fn on_enter(&mut self, who: Option<NodeId>, ctx: &mut Ctx<'_, Self>) {
        let asked = std::mem::take(&mut self.knocked) && self.is_lost();
        match who {
            Some(who) if asked => self.tell_can(|can, ctx| can.enter_through(who, ctx), ctx),
            None if asked => self.tell_can(Can::take_all, ctx),
            // Two own the door's point: their claims say who does.
            Some(who) if who != ctx.me && self.owns_door() => {
                self.tell_can(
                    |can, ctx| {
                        let update = can.update(ctx.now);
                        ctx.send(who, Message::Update(update, true));
                    },
                    ctx,
                );
            }
            Some(_) | None => {}
        }
    }

    fn on_hold(&mut self, node: NodeId, open: bool, hops: u16, primary: &Can, ctx: &mut Ctx<'_, Self>) {
        match primary.next_hop(&DOOR) {
            Hop::Here => {
                let before = self.holder(ctx.now);
                if open {
                    self.holder = Some((node, ctx.now + primary.config().silence()));
                    if let Some(before) = before.filter(|&before| before != node) {
                        ctx.send(before, SecondaryMessage::Enter(Some(node)));
                    }
                } else if before == Some(node) {
                    self.holder = None;
                }
            }
            Hop::To(next) if hops < HOPS_MAX => {
                ctx.send(next, SecondaryMessage::Hold { node, open, hops: hops + 1 });
            }
            Hop::To(_) | Hop::Stuck => {}
        }
    }

    fn owns_door(&self) -> bool {
        self.is_in() && self.can.claims.iter().any(|claim| claim.zone.contains(&DOOR))
    }

    /// Whoever has come to own the door's point says so, and again with every heartbeat.
    fn tell_door(&mut self, primary: &Can, ctx: &mut Ctx<'_, Self>) {
        let owns = self.owns_door();
        if owns && !self.holds {
            self.on_hold(ctx.me, true, 0, primary, ctx);
        }
        self.holds = owns;
    }
}

/// One of the neighbours that, as they last said, run something and have something left.
fn likely_in(primary: &Can, ctx: &mut Ctx<'_, Secondary>) -> Option<NodeId> {
    let likely = || primary.vitals().filter(|(_, vitals)| vitals.is_partly_used()).map(|(node, _)| node);
    let count = likely().count();
    (count > 0).then(|| likely().nth(ctx.chance.random_range(0..count))).flatten()
}

impl Hosts<Can> for Secondary {
    fn message(message: Message) -> SecondaryMessage {
        SecondaryMessage::Zones(message)
    }

    fn timer(timer: Timer) -> Timer {
        timer
    }

    fn record(never: Never) -> Never {
        never
    }

    fn key(never: Never) -> Never {
        never
    }

    fn action(never: Never) -> Never {
        never
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use shoal_model::Time;

    use super::super::tests::vitals;
    use super::super::{Claim, Zone};
    use super::*;
    use crate::protocol::{Chance, Out};
    use crate::shared::Shared;

    const ME: NodeId = NodeId(1);
    const OTHER: NodeId = NodeId(2);

    /// What was sent, and nothing else.
    #[derive(Default)]
    struct Sent(Vec<(NodeId, SecondaryMessage)>);

    impl Out<Secondary> for Sent {
        fn send(&mut self, to: NodeId, message: SecondaryMessage) {
            self.0.push((to, message));
        }

        fn wake(&mut self, _: Time, _: Timer) {}

        fn save(&mut self, never: Never) {
            match never {}
        }

        fn erase(&mut self, never: Never) {
            match never {}
        }

        fn act(&mut self, never: Never) {
            match never {}
        }

        fn report(&mut self, never: Never) {
            match never {}
        }
    }

    fn told(
        secondary: &mut Secondary,
        tell: impl FnOnce(&mut Secondary, &mut Ctx<'_, Secondary>),
    ) -> Vec<(NodeId, SecondaryMessage)> {
        let mut sent = Sent::default();
        let mut chance = Chance::seed_from_u64(1);
        tell(secondary, &mut Ctx::new(Time::from_secs(9), ME, &mut chance, &mut sent));
        sent.0
    }

    /// A node that owns all of the Primary, and its part of the Secondary.
    fn alone() -> (Can, Secondary) {
        let config = Config::default();
        let mut primary = Can::restore(&Setup { config, point: Some([7; 6]) }, ME, std::iter::empty());
        primary.claims = Shared::new(vec![Claim { zone: Zone::WHOLE, version: 1 }]);
        (primary, Secondary::new(&config, ME))
    }

    fn heard(
        secondary: &mut Secondary,
        primary: &Can,
        message: SecondaryMessage,
    ) -> Vec<(NodeId, SecondaryMessage)> {
        told(secondary, |secondary, ctx| {
            secondary.handle(Input::Message { from: OTHER, message }, primary, ctx)
        })
    }

    #[test]
    fn first_who_knocks_gets_all_of_the_space_and_the_next_is_sent_to_it() {
        let (primary, mut secondary) = alone();
        let sent = told(&mut secondary, |secondary, ctx| secondary.follow(vitals(1, 2), &primary, ctx));
        assert_eq!(sent, [(ME, SecondaryMessage::Enter(None))]);
        assert!(!secondary.is_in());
        heard(&mut secondary, &primary, SecondaryMessage::Enter(None));
        assert!(secondary.is_in());
        assert_eq!(secondary.can().claims()[0].zone, Zone::WHOLE);
        assert_eq!(secondary.holder(Time::from_secs(9)), Some(ME));
        let sent = heard(&mut secondary, &primary, SecondaryMessage::Knock { newcomer: OTHER, hops: 3 });
        assert_eq!(sent, [(OTHER, SecondaryMessage::Enter(Some(ME)))]);
        told(&mut secondary, |secondary, ctx| secondary.follow(vitals(1, 0), &primary, ctx));
        assert!(!secondary.is_in(), "nothing is left");
        assert_eq!(secondary.holder(Time::from_secs(9)), None, "and nobody else is in");
        let sent = heard(&mut secondary, &primary, SecondaryMessage::Knock { newcomer: OTHER, hops: 3 });
        assert_eq!(sent, [(OTHER, SecondaryMessage::Enter(None))]);
    }

    #[test]
    fn word_that_nobody_asked_for_gives_no_zone() {
        let (primary, mut secondary) = alone();
        let claim = Claim { zone: Zone::WHOLE, version: u32::MAX };
        let nonsense = [
            SecondaryMessage::Enter(None),
            SecondaryMessage::Enter(Some(OTHER)),
            SecondaryMessage::Zones(Message::Grant(Box::new(claim))),
            SecondaryMessage::Zones(Message::Welcome { claim: Box::new(claim), around: Vec::new() }),
            SecondaryMessage::Zones(Message::Tied(Time::ZERO)),
            SecondaryMessage::Zones(Message::Untie(Time::NEVER)),
            SecondaryMessage::Hold { node: OTHER, open: false, hops: u16::MAX },
        ];
        for message in nonsense {
            assert_eq!(heard(&mut secondary, &primary, message), []);
            assert!(secondary.can().claims().is_empty());
        }
    }

    #[test]
    fn two_that_own_the_door_hear_of_each_other() {
        let (primary, mut secondary) = alone();
        let hold = |node| SecondaryMessage::Hold { node, open: true, hops: 1 };
        assert_eq!(heard(&mut secondary, &primary, hold(OTHER)), []);
        let sent = heard(&mut secondary, &primary, hold(NodeId(3)));
        assert_eq!(sent, [(OTHER, SecondaryMessage::Enter(Some(NodeId(3))))]);
        assert_eq!(secondary.holder(Time::from_secs(9)), Some(NodeId(3)));
    }
}
