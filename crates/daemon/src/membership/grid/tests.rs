//! Tickets are redeemed once, at their issuer, by one key; and nobody else gets in.

use super::*;
use crate::cabinet::MemoryCabinet;

const NOW: Time = Time::from_secs(1_000);

fn key(number: u8) -> Identity {
    Identity::from_bytes(&[number; 32])
}

fn grid(identity: &Identity, cabinet: &Arc<MemoryCabinet>) -> Grid {
    let cabinet = Arc::clone(cabinet) as Arc<dyn Cabinet>;
    Grid::create(identity, "lab".parse().unwrap(), b"recipe".to_vec(), cabinet, NOW).unwrap()
}

fn issue(grid: &Grid, terms: Terms) -> Ticket {
    grid.issue(vec!["127.0.0.1:1".parse().unwrap()], vec![], terms, NOW).unwrap()
}

fn redeem(grid: &Grid, ticket: &Ticket, key: &Identity, now: Time) -> Result<Admission, Refusal> {
    grid.redeem(ticket.grid, ticket.issuer, &ticket.token, key.public(), |_| None, now)
}

#[test]
fn newcomer_with_a_ticket_becomes_a_member_that_anyone_recognises() {
    let first = grid(&key(1), &Arc::default());
    let terms = Terms { organisation: "physics".parse().ok(), ..Terms::default() };
    let admission = redeem(&first, &issue(&first, terms), &key(2), NOW).unwrap();
    let cabinet = Arc::new(MemoryCabinet::new());
    Grid::enter(&key(2), first.id(), admission, cabinet.clone(), NOW).unwrap();
    let second = Grid::load(&key(2), cabinet).unwrap().unwrap();
    assert_eq!((second.id(), second.name(), second.settings()), (first.id(), first.name(), first.settings()));
    let member = second.chain().verify(first.id(), &key(2).public(), NOW).unwrap();
    assert_eq!(member.organisation.unwrap().as_str(), "physics");
    assert!(matches!(
        second.issue(vec!["127.0.0.1:1".parse().unwrap()], vec![], Terms::default(), NOW),
        Err(GridError::NotAdmitter)
    ));
}

#[test]
fn ticket_is_redeemed_once_and_its_answer_repeated_to_the_same_key_also_after_a_restart() {
    let cabinet = Arc::new(MemoryCabinet::new());
    let first = grid(&key(1), &cabinet);
    let ticket = issue(&first, Terms::default());
    let admission = redeem(&first, &ticket, &key(2), NOW).unwrap();
    drop(first);
    let first = Grid::load(&key(1), cabinet).unwrap().unwrap();
    let late = NOW + Span::from_hours(1_000);
    assert_eq!(redeem(&first, &ticket, &key(2), late), Ok(admission));
    assert_eq!(redeem(&first, &ticket, &key(3), NOW), Err(Refusal::Used));
}

#[test]
fn each_reason_not_to_let_somebody_in_is_told_apart() {
    let first = grid(&key(1), &Arc::default());
    let ticket = issue(&first, Terms::default());
    let ask = |grid: GridId, issuer: PublicKey, token: Token, known: Option<PublicKey>, now: Time| {
        first.redeem(grid, issuer, &token, key(2).public(), |_| known, now).unwrap_err()
    };
    let other_grid = GridId(key(9).public());
    assert_eq!(ask(other_grid, ticket.issuer, ticket.token, None, NOW), Refusal::OtherGrid);
    assert_eq!(ask(ticket.grid, key(9).public(), ticket.token, None, NOW), Refusal::OtherIssuer);
    assert_eq!(ask(ticket.grid, ticket.issuer, Token([0; 16]), None, NOW), Refusal::Unknown);
    assert_eq!(ask(ticket.grid, ticket.issuer, ticket.token, None, ticket.expires), Refusal::Expired);
    let taken = Some(key(5).public());
    assert_eq!(ask(ticket.grid, ticket.issuer, ticket.token, taken, NOW), Refusal::IdTaken);
    assert_eq!(redeem(&first, &ticket, &key(1), NOW), Err(Refusal::IdTaken), "not to the issuer itself");
    assert!(redeem(&first, &ticket, &key(2), NOW).is_ok(), "nothing of that has used it up");
}

#[test]
fn one_of_many_at_once_gets_in() {
    let first = grid(&key(1), &Arc::default());
    let ticket = issue(&first, Terms::default());
    let admitted = std::thread::scope(|scope| {
        let (first, ticket) = (&first, &ticket);
        let askers: Vec<_> = (2..10)
            .map(|number| scope.spawn(move || redeem(first, ticket, &key(number), NOW).is_ok()))
            .collect();
        askers.into_iter().filter_map(|asker| asker.join().ok()).filter(|admitted| *admitted).count()
    });
    assert_eq!(admitted, 1);
}

#[test]
fn admitter_by_ticket_admits_others_whom_all_recognise() {
    let first = grid(&key(1), &Arc::default());
    let terms = Terms { admitter: true, ..Terms::default() };
    let admission = redeem(&first, &issue(&first, terms.clone()), &key(2), NOW).unwrap();
    let second = Grid::enter(&key(2), first.id(), admission, Arc::<MemoryCabinet>::default(), NOW).unwrap();
    let admission = redeem(&second, &issue(&second, Terms::default()), &key(3), NOW).unwrap();
    let third = Grid::enter(&key(3), first.id(), admission, Arc::<MemoryCabinet>::default(), NOW).unwrap();
    assert_eq!(third.member(NOW).unwrap().admitter, key(2).public());
    let addresses = vec!["127.0.0.1:1".parse().unwrap()];
    assert!(matches!(second.issue(addresses, vec![], terms, NOW), Err(GridError::NoRoot)));
}

#[test]
fn second_grid_in_one_folder_is_refused() {
    let cabinet = Arc::new(MemoryCabinet::new());
    let first = grid(&key(1), &cabinet);
    let again = Grid::create(&key(1), "two".parse().unwrap(), vec![], cabinet, NOW);
    assert!(matches!(again, Err(GridError::Already(id)) if id == first.id()));
}

#[test]
fn tickets_have_a_limit_that_expired_ones_do_not_count_for() {
    let cabinet = Arc::new(MemoryCabinet::new());
    let first = grid(&key(1), &cabinet);
    let issued = Issued { expires: Time::NEVER, terms: Terms::default(), redeemed: None };
    for number in 0..TICKETS_MAX as u64 {
        cabinet.put(TICKETS, &number.to_be_bytes(), &encoded(&issued)).unwrap();
    }
    let addresses = || vec!["127.0.0.1:1".parse().unwrap()];
    assert!(matches!(
        first.issue(addresses(), vec![], Terms::default(), NOW),
        Err(GridError::TooManyTickets)
    ));
    cabinet.put(TICKETS, &7u64.to_be_bytes(), &encoded(&Issued { expires: NOW, ..issued })).unwrap();
    assert!(first.issue(addresses(), vec![], Terms::default(), NOW).is_ok());
}

#[test]
fn grid_of_another_key_or_a_later_version_is_not_loaded() {
    let cabinet = Arc::new(MemoryCabinet::new());
    let first = grid(&key(1), &cabinet);
    assert!(matches!(Grid::load(&key(2), cabinet.clone()), Err(GridError::Chain(ChainError::OtherKey))));
    let later = Kept {
        version: 2,
        id: first.id,
        name: first.name.clone(),
        settings: vec![].into(),
        chain: first.chain.clone(),
        appointment: None,
    };
    cabinet.put(GRID, SELF_KEY, &encoded(&later)).unwrap();
    assert!(matches!(Grid::load(&key(1), cabinet.clone()), Err(GridError::Newer(2))));
    cabinet.put(GRID, SELF_KEY, b"rubbish").unwrap();
    assert!(matches!(Grid::load(&key(1), cabinet), Err(GridError::Unreadable(_))));
}
