//! Names, notices and revocations as a node keeps and hears them.

use std::sync::Arc;

use shoal_model::{Job, Name, Span};

use super::samples::{key, signed, trust};
use super::*;

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

#[test]
fn key_has_one_name_on_a_node_and_a_name_one_key_also_after_a_restart() {
    let (first, cabinet) = trust();
    let hour = Span::from_hours(1);
    assert!(first.vouch(key(9).public(), Some(name("alice")), hour).is_ok());
    let again = Trust::open(Arc::clone(&first.grid), cabinet, first.clock).unwrap();
    for trust in [&*first, &again] {
        assert!(trust.vouch(key(9).public(), None, hour).is_ok());
        let taken = trust.vouch(key(8).public(), Some(name("alice")), hour);
        assert!(matches!(taken, Err(Unvouched::NameTaken(_))));
        let other = trust.vouch(key(9).public(), Some(name("alice2")), hour);
        assert!(matches!(other, Err(Unvouched::OtherName(_))));
        assert!(trust.vouch(key(7).public(), Some(name("Alice")), hour).is_ok(), "that is another name");
    }
}

#[test]
fn pass_of_a_job_that_waits_is_renewed_by_who_signed_it_and_for_nobody_who_was_revoked() {
    let (trust, _) = trust();
    let now = trust.clock.now();
    let with = |lasts| {
        let pass = trust.vouch(key(9).public(), Some(name("alice")), lasts).unwrap();
        signed(trust.grid(), &key(9), Job::command(["true"])).with_pass(pass)
    };
    assert_eq!(trust.renewed(&with(VOUCHED_FOR), now), None, "it has most of its time");
    let short = with(Span::from_hours(1));
    for later in [Span::ZERO, Span::from_hours(2_000)] {
        let renewed = trust.renewed(&short, now + later).unwrap();
        assert_eq!(renewed.id(), short.id());
        let says = pass::says(renewed.pass().unwrap()).unwrap();
        assert!(says.expires >= now + VOUCHED_FOR && says.name == name("alice"));
    }
    let lab = key(5);
    let hour = now + Span::from_hours(1);
    let statement = Statement::new(trust.grid(), key(9).public(), name("alice"), Some(name("lab-a")), hour);
    let foreign = short.clone().with_pass(pass::by_organisation(&lab, &statement));
    assert_eq!(trust.renewed(&foreign, now), None, "another's to renew");
    trust.revoke(Said::RevokedUser(key(9).public())).unwrap();
    assert_eq!(trust.renewed(&short, now), None);
}

#[test]
fn jobs_of_a_user_carry_one_pass_for_a_day_unless_it_was_revoked() {
    let (trust, _) = trust();
    let (alice, bob, now) = (key(9).public(), key(8).public(), trust.clock.now());
    let pass = |user, hours| trust.vouch_for_job(user, None, now + Span::from_hours(hours)).unwrap();
    let first = pass(alice, 0);
    assert_eq!(pass(alice, 23), first);
    assert_ne!(pass(bob, 0), first);
    assert_ne!(trust.vouch(alice, None, VOUCHED_FOR).unwrap(), first, "what is asked for by hand is its own");
    let second = pass(alice, 24);
    assert_ne!(second, first);
    let says = pass::says(&second).unwrap();
    assert_eq!(
        says.expires,
        now + Span::from_hours(24 + 24) + VOUCHED_FOR,
        "all of its time for the last one too"
    );
    assert_eq!(pass(alice, 0), second, "one that lasts longer will do, if a clock was set back");
    trust.revoke(Said::RevokedPass(says.serial)).unwrap();
    assert_ne!(pass(alice, 24), second);
}

#[test]
fn notices_survive_a_restart_and_make_two_nodes_know_the_same() {
    let (first, cabinet) = trust();
    let organisation = key(5);
    first.trust_organisation(name("lab-b"), organisation.public()).unwrap();
    first.revoke(Said::RevokedUser(key(9).public())).unwrap();
    let by_lab =
        Notice::by_organisation(&organisation, first.grid(), Said::RevokedPass(7), first.clock.now());
    assert_eq!(first.add(by_lab.clone()), Ok(true));
    assert_eq!(first.add(by_lab), Ok(false), "heard before");
    let again = Trust::open(Arc::clone(&first.grid), cabinet, first.clock).unwrap();
    assert_eq!(again.digest(), first.digest());
    assert_eq!(again.notices().len(), 3);
    assert_eq!(again.organisations()[&name("lab-b")], organisation.public());

    // Another node of the grid hears of them in whatever order.
    let empty: Arc<dyn Cabinet> = Arc::new(crate::cabinet::MemoryCabinet::new());
    let other = Trust::open(Arc::clone(&first.grid), empty, first.clock).unwrap();
    for _ in 0..2 {
        for notice in first.notices().into_iter().rev() {
            let _ = other.add(Notice::read(&notice.write()).unwrap());
        }
    }
    assert_eq!(other.digest(), first.digest());
}

#[test]
fn notice_of_another_grid_or_by_somebody_without_a_say_is_not_heeded() {
    let (first, _) = trust();
    let (other, _) = trust();
    let revoked = Said::RevokedUser(key(9).public());
    let foreign = other.revoke(revoked.clone()).unwrap();
    assert_eq!(first.add(foreign), Err(NoticeError::OtherGrid));
    let stranger = Notice::by_organisation(&key(5), first.grid(), revoked, first.clock.now());
    assert_eq!(first.add(stranger), Err(NoticeError::NoSay));
    first.trust_organisation(name("lab-b"), key(5).public()).unwrap();
    let said = Said::Organisation(name("lab-c"), key(5).public());
    let grabs = Notice::by_organisation(&key(5), first.grid(), said, first.clock.now());
    assert_eq!(first.add(grabs), Err(NoticeError::NoSay), "an organisation says nothing of others");
}

#[test]
fn organisation_revokes_its_own_passes_and_no_others() {
    let (first, _) = trust();
    first.trust_organisation(name("lab-b"), key(5).public()).unwrap();
    let said = Said::RevokedUser(key(9).public());
    first.add(Notice::by_organisation(&key(5), first.grid(), said, first.clock.now())).unwrap();
    let bearer = |organisation: &str, issuer: &Identity, by_organisation| Bearer {
        key: key(9).public(),
        name: name("alice"),
        organisation: organisation.parse().ok(),
        expires: Time::NEVER,
        serial: 1,
        issuer: issuer.public(),
        by_organisation,
    };
    assert_eq!(first.check(&bearer("lab-b", &key(5), true)), Err(Denial::Revoked));
    assert_eq!(first.check(&bearer("lab-a", &key(2), false)), Ok(()));
}

#[test]
fn revoked_node_or_organisation_vouches_for_nobody() {
    let (first, _) = trust();
    first.trust_organisation(name("lab-b"), key(5).public()).unwrap();
    let bearer = |organisation: &str, issuer: &Identity, by_organisation| Bearer {
        key: key(9).public(),
        name: name("alice"),
        organisation: organisation.parse().ok(),
        expires: Time::NEVER,
        serial: 1,
        issuer: issuer.public(),
        by_organisation,
    };
    let (by_lab, by_node) = (bearer("lab-b", &key(5), true), bearer("lab-a", &key(3), false));
    // Who is no admitter and did not sign them has no say.
    let said = Said::RevokedUser(key(3).public());
    first.add(Notice::by_organisation(&key(5), first.grid(), said, first.clock.now())).unwrap();
    assert_eq!((first.check(&by_lab), first.check(&by_node)), (Ok(()), Ok(())));
    first.revoke(Said::RevokedUser(key(3).public())).unwrap();
    assert_eq!((first.check(&by_lab), first.check(&by_node)), (Ok(()), Err(Denial::Revoked)));
    first.revoke(Said::RevokedUser(key(5).public())).unwrap();
    assert_eq!(first.check(&by_lab), Err(Denial::Revoked));
}

#[test]
fn latest_word_on_an_organisations_key_counts_in_whatever_order_it_is_heard() {
    let (first, _) = trust();
    let now = first.clock.now();
    let said = |number: u8, at: Time| {
        Notice::by_node(&first.grid, Said::Organisation(name("lab-b"), key(number).public()), at)
    };
    for (old, new) in [(5, 6), (6, 5)] {
        let (before, after) = (said(old, now), said(new, now + Span::from_secs(1)));
        let revoked = Said::RevokedPass(7);
        let by_old = Notice::by_organisation(&key(old), first.grid(), revoked, now);
        for order in [[&before, &after], [&after, &before]] {
            let cabinet: Arc<dyn Cabinet> = Arc::new(crate::cabinet::MemoryCabinet::new());
            let other = Trust::open(Arc::clone(&first.grid), Arc::clone(&cabinet), first.clock).unwrap();
            for notice in order {
                assert_eq!(other.add(notice.clone()), Ok(true));
            }
            assert_eq!(other.add(by_old.clone()), Ok(true), "it concerns what the old key has signed");
            let again = Trust::open(Arc::clone(&first.grid), cabinet, first.clock).unwrap();
            assert_eq!(again.digest(), other.digest());
            for trust in [&other, &again] {
                assert_eq!(trust.organisations()[&name("lab-b")], key(new).public());
            }
        }
    }
    for number in [5, 6, 5] {
        first.trust_organisation(name("lab-b"), key(number).public()).unwrap();
        assert_eq!(first.organisations()[&name("lab-b")], key(number).public());
    }
}

#[test]
fn revocation_by_an_admitter_whose_time_is_over_stays_after_a_restart() {
    let cabinet: Arc<dyn Cabinet> = Arc::new(crate::cabinet::MemoryCabinet::new());
    // A grid of 1970, whose first appointment is over by now.
    let then = Time::from_secs(1_000);
    let grid = Grid::create_of(None, &key(2), name("grid"), vec![], Arc::clone(&cabinet), then).unwrap();
    let notice = Notice::by_node(&grid, Said::RevokedUser(key(9).public()), then);
    cabinet.put(NOTICES, &[1], &notice.to_bytes()).unwrap();
    let trust = Trust::open(Arc::new(grid), cabinet, Clock::new()).unwrap();
    assert!(!trust.is_admitter());
    assert_eq!(trust.revocations().len(), 1);
    let late = Notice::by_node(&trust.grid, Said::RevokedUser(key(8).public()), then);
    assert_eq!(trust.add(late), Err(NoticeError::NoSay), "it is new, and comes too late");
}

#[test]
fn others_cannot_fill_the_room_of_the_grids_own_voice() {
    let (first, _) = trust();
    first.trust_organisation(name("lab-b"), key(5).public()).unwrap();
    first.known.write().unwrap().of_others = NOTICES_OF_OTHERS_MAX;
    let said = Said::RevokedPass(7);
    let by_lab = Notice::by_organisation(&key(5), first.grid(), said, first.clock.now());
    assert!(matches!(first.add(by_lab), Err(NoticeError::TooMany(_))));
    assert!(first.revoke(Said::RevokedUser(key(9).public())).is_ok());
}
