//! Names, notices and revocations as a node keeps and hears them.

use std::sync::Arc;

use shoal_model::{Name, Span};

use super::samples::{key, trust};
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
