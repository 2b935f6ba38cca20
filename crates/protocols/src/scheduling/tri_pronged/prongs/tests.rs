//! The handshakes of the prongs: who offers what to whom, who takes it, and what late, lost and doubled words come to.

mod scene;

use super::*;
use crate::scheduling::tri_pronged::Variant;
use Said::{Move, Nothing, Offer, OfferToWait, Pull, PullToBalance};
use scene::{ANNA, BERT, CARL, OWNER, Said, Scene, vitals, with_bar, with_cores, with_speed};

const A_MOMENT: Span = Span::from_micros(1);
/// A moment less than room is kept for.
const ALMOST: Span = Span::from_micros(KEPT_FOR.as_micros() - 1);
const SILENCE: [(NodeId, Said); 0] = [];

/// A node with a job that has all cores, and another that waits.
fn one_waits(variant: Variant) -> Scene {
    let mut scene = Scene::new(variant);
    scene.comes(1, 4);
    scene.comes(2, 1);
    assert_eq!((scene.running(), scene.waiting()), (vec![1], vec![2]));
    scene
}

/// The same, and the one that waits is on offer to Anna.
fn one_is_on_offer() -> Scene {
    let mut scene = one_waits(Variant::LiPush);
    scene.tells(ANNA, vitals(4, 0));
    scene.round();
    assert_eq!(scene.said(), [(ANNA, Offer(2))]);
    scene
}

#[test]
fn offer_made_when_there_was_room_is_refused_once_that_is_gone() {
    let mut scene = Scene::new(Variant::LiPush);
    // Anna was told of four cores before this one came, and knows no better.
    scene.comes(1, 3);
    assert!(!scene.takes(ANNA, 2, 2, 0), "two cores");
    assert!(scene.takes(ANNA, 3, 1, 0), "one is left");
}

#[test]
fn offer_is_refused_to_who_was_overtaken_less_often_than_the_first_here() {
    let mut scene = Scene::new(Variant::LiPush);
    scene.comes(1, 3);
    scene.comes(2, 2);
    scene.comes(3, 1);
    scene.ends(3);
    assert_eq!(scene.waiting(), [2], "3 has overtaken it");
    assert!(!scene.takes(ANNA, 4, 1, 0));
    assert!(scene.takes(ANNA, 5, 1, 1));
}

#[test]
fn of_two_offers_for_the_same_room_one_is_accepted() {
    let mut scene = Scene::new(Variant::LiPush);
    assert!(scene.takes(ANNA, 1, 3, 0));
    assert!(!scene.takes(BERT, 2, 3, 0));
    assert!(scene.takes(BERT, 3, 1, 0), "beside the first");
}

#[test]
fn offer_that_the_network_doubles_is_accepted_twice() {
    let mut scene = Scene::new(Variant::LiPush);
    assert!(scene.takes(ANNA, 1, 3, 0));
    assert!(scene.takes(ANNA, 1, 3, 0), "else the second answer may overtake the first");
    assert!(!scene.takes(BERT, 2, 2, 0), "room is kept for it once and not given away");
    assert!(scene.takes(BERT, 3, 1, 0));
}

#[test]
fn job_that_is_to_wait_is_accepted_without_room_by_whoever_can_run_it() {
    let mut scene = Scene::new(Variant::LiqPush);
    scene.comes(1, 4);
    assert!(scene.lets_wait(ANNA, 2, 4));
    assert!(!scene.lets_wait(ANNA, 3, 5), "more than the whole machine");
}

#[test]
fn room_is_kept_for_an_accepted_job_only_so_long() {
    let mut scene = Scene::new(Variant::LiPush);
    assert!(scene.takes(ANNA, 1, 4, 0));
    scene.comes(2, 1);
    scene.passes(ALMOST);
    assert_eq!(scene.waiting(), [2], "the room is another's");
    assert!(!scene.takes(BERT, 3, 3, 0));
    scene.passes(A_MOMENT);
    assert_eq!(scene.running(), [2], "who was to come has not");
    assert!(scene.takes(BERT, 3, 3, 0));
}

#[test]
fn job_that_comes_after_its_room_was_given_up_does_not_take_that_of_another() {
    let mut scene = Scene::new(Variant::LiPush);
    scene.comes(1, 3);
    assert!(scene.takes(ANNA, 2, 1, 0));
    scene.passes(KEPT_FOR);
    assert!(scene.takes(BERT, 3, 1, 0));
    scene.comes(2, 1);
    assert_eq!((scene.running(), scene.waiting()), (vec![1], vec![2]));
    scene.comes(3, 1);
    assert_eq!((scene.running(), scene.waiting()), (vec![1, 3], vec![2]));
}

#[test]
fn room_is_kept_no_longer_once_the_job_has_come() {
    let mut scene = Scene::new(Variant::LiPush);
    scene.comes(1, 1);
    assert!(scene.takes(ANNA, 2, 2, 0));
    scene.comes(2, 2);
    assert_eq!(scene.running(), [1, 2]);
    assert!(scene.takes(BERT, 3, 1, 0), "its room is not counted twice");
}

#[test]
fn room_is_kept_for_so_many_jobs_and_no_more() {
    let mut scene = Scene::new(Variant::LiqPush);
    let most = u8::try_from(HOLDS_MAX - 1).expect("numbers for all");
    for number in 0..=most {
        assert!(scene.lets_wait(ANNA, number, 1));
    }
    // Another of these numbers is another job if it asks for more.
    assert!(!scene.lets_wait(BERT, 0, 2));
    scene.passes(KEPT_FOR);
    assert!(scene.lets_wait(BERT, 0, 2));
}

#[test]
fn accepted_job_is_moved_by_its_owner() {
    let mut scene = one_is_on_offer();
    scene.answers(ANNA, 2, true);
    assert_eq!(scene.said(), [(OWNER, Move(2, ANNA))]);
    assert_eq!((scene.waiting(), scene.prongs().moves()), (vec![], 1));
}

#[test]
fn refused_job_stays_and_is_offered_again_in_the_next_round() {
    let mut scene = one_is_on_offer();
    scene.answers(ANNA, 2, false);
    assert_eq!((scene.said(), scene.waiting()), (SILENCE.to_vec(), vec![2]));
    scene.round();
    assert_eq!(scene.said(), [(ANNA, Offer(2))]);
}

#[test]
fn answer_moves_nothing_once_the_room_is_no_longer_kept() {
    for (after, moved) in [(ALMOST, true), (KEPT_FOR, false)] {
        let mut scene = one_is_on_offer();
        scene.passes(after);
        scene.answers(ANNA, 2, true);
        let said = if moved { vec![(OWNER, Move(2, ANNA))] } else { vec![] };
        assert_eq!(scene.said(), said, "after {after}");
        assert_eq!(scene.waiting().is_empty(), moved, "after {after}");
    }
}

#[test]
fn doubled_answer_moves_a_job_once() {
    let mut scene = one_is_on_offer();
    scene.answers(ANNA, 2, true);
    scene.answers(ANNA, 2, true);
    assert_eq!(scene.said(), [(OWNER, Move(2, ANNA))]);
    // Its owner finds that Anna does not have it, and only then the double comes.
    scene.stays(2);
    assert_eq!(scene.waiting(), [2]);
    scene.answers(ANNA, 2, true);
    assert_eq!((scene.said(), scene.waiting()), (SILENCE.to_vec(), vec![2]));
    assert_eq!(scene.prongs().moves(), 1);
}

#[test]
fn answer_of_who_was_not_asked_moves_nothing() {
    let mut scene = one_is_on_offer();
    scene.answers(BERT, 2, true);
    scene.answers(ANNA, 1, true);
    assert_eq!(scene.said(), SILENCE);
    scene.answers(ANNA, 2, true);
    assert_eq!(scene.said(), [(OWNER, Move(2, ANNA))], "who was asked can still answer");
}

#[test]
fn answer_for_a_job_that_has_started_here_meanwhile_moves_nothing() {
    let mut scene = one_is_on_offer();
    scene.ends(1);
    assert_eq!(scene.running(), [2]);
    scene.answers(ANNA, 2, true);
    assert_eq!((scene.said(), scene.prongs().moves()), (SILENCE.to_vec(), 0));
}

#[test]
fn lost_answer_leaves_a_job_where_it_is_and_it_is_offered_again_later() {
    let mut scene = one_is_on_offer();
    scene.passes(ALMOST);
    scene.round();
    assert_eq!((scene.said(), scene.waiting()), (SILENCE.to_vec(), vec![2]));
    scene.passes(A_MOMENT);
    scene.round();
    assert_eq!((scene.said(), scene.waiting()), (vec![(ANNA, Offer(2))], vec![2]));
}

#[test]
fn job_on_offer_is_not_pushed_to_a_second_node() {
    let mut scene = one_is_on_offer();
    scene.tells(BERT, vitals(4, 0));
    scene.tells(ANNA, vitals(0, 0));
    scene.round();
    assert_eq!(scene.said(), SILENCE, "Bert would be better by now");
}

#[test]
fn job_on_offer_is_not_pulled_by_a_second_node() {
    let mut scene = one_waits(Variant::LiPull);
    scene.pulls(ANNA, vitals(4, 0), false);
    scene.pulls(BERT, vitals(4, 0), false);
    assert_eq!(scene.said(), [(ANNA, Offer(2)), (BERT, Nothing)]);
}

#[test]
fn node_that_leaves_accepts_nothing_and_asks_for_nothing() {
    let mut scene = Scene::new(Variant::LiqPull);
    scene.comes(1, 1);
    scene.tells(ANNA, vitals(0, 5));
    scene.round();
    assert_eq!(scene.said(), [(ANNA, Pull)], "as long as it stays");
    scene.leaves();
    scene.hears(ANNA, Message::Nothing);
    scene.round();
    assert_eq!(scene.said(), SILENCE);
    assert!(!scene.takes(ANNA, 2, 1, 0));
    assert!(!scene.lets_wait(ANNA, 3, 1));
}

#[test]
fn node_with_room_asks_the_longest_queue_first_and_the_next_when_there_is_nothing() {
    let mut scene = Scene::new(Variant::LiPull);
    scene.tells(ANNA, vitals(0, 2));
    scene.tells(BERT, vitals(0, 5));
    scene.tells(CARL, vitals(4, 0));
    scene.round();
    assert_eq!(scene.said(), [(BERT, Pull)]);
    scene.hears(BERT, Message::Nothing);
    assert_eq!(scene.said(), [(ANNA, Pull)]);
    scene.hears(ANNA, Message::Nothing);
    assert_eq!(scene.said(), SILENCE, "nobody waits at Carl's");
}

#[test]
fn node_without_room_asks_nobody() {
    let mut scene = Scene::new(Variant::LiPull);
    scene.comes(1, 4);
    scene.tells(ANNA, vitals(0, 2));
    scene.round();
    assert_eq!(scene.said(), SILENCE);
    scene.ends(1);
    assert_eq!(scene.said(), [(ANNA, Pull)], "each end of a job begins a round");
}

#[test]
fn node_that_is_offered_a_job_asks_no_further() {
    let mut scene = Scene::new(Variant::LiPull);
    scene.tells(ANNA, vitals(0, 2));
    scene.tells(BERT, vitals(0, 5));
    scene.round();
    assert!(scene.takes(BERT, 1, 1, 0));
    scene.hears(BERT, Message::Nothing);
    assert_eq!(scene.said(), SILENCE);
}

#[test]
fn late_nothing_of_an_earlier_round_has_nobody_asked_twice() {
    let mut scene = Scene::new(Variant::LiPull);
    scene.tells(ANNA, vitals(0, 2));
    scene.tells(BERT, vitals(0, 5));
    scene.tells(CARL, vitals(0, 1));
    scene.round();
    scene.hears(BERT, Message::Nothing);
    assert_eq!(scene.said(), [(BERT, Pull), (ANNA, Pull)]);
    scene.round();
    assert_eq!(scene.said(), [(BERT, Pull)]);
    scene.hears(ANNA, Message::Nothing);
    assert_eq!(scene.said(), SILENCE, "Bert was asked last");
    scene.hears(BERT, Message::Nothing);
    scene.hears(BERT, Message::Nothing);
    assert_eq!(scene.said(), [(ANNA, Pull)], "once, although Bert's word of the first round was doubled");
}

#[test]
fn who_asks_gets_the_job_that_fits_it_best() {
    let mut scene = Scene::new(Variant::LiPull);
    scene.comes(1, 4);
    scene.comes(2, 1);
    scene.comes(3, 3);
    scene.comes(4, 2);
    scene.pulls(ANNA, vitals(2, 0), false);
    assert_eq!(scene.said(), [(ANNA, Offer(4))], "three cores are too many, two leave none idle");
}

#[test]
fn job_is_pushed_to_the_neighbour_that_it_fits_best() {
    let mut scene = one_waits(Variant::LiPush);
    scene.comes(3, 1);
    scene.comes(4, 1);
    scene.comes(5, 4);
    scene.tells(ANNA, vitals(4, 0));
    scene.tells(BERT, vitals(1, 0));
    scene.tells(CARL, with_speed(2_000, vitals(4, 0)));
    scene.round();
    // Bert's machine is full with the first; to the next two Carl's is as good as Anna's, and faster; the last wants a
    // whole machine.
    assert_eq!(scene.said(), [(BERT, Offer(2)), (CARL, Offer(3)), (CARL, Offer(4)), (ANNA, Offer(5))]);
}

#[test]
fn job_is_not_offered_where_the_first_was_overtaken_more_often() {
    let mut scene = one_waits(Variant::LiPush);
    scene.tells(ANNA, with_bar(1, vitals(1, 1)));
    scene.round();
    assert_eq!(scene.said(), SILENCE);
    scene.tells(ANNA, with_bar(0, vitals(1, 1)));
    scene.round();
    assert_eq!(scene.said(), [(ANNA, Offer(2))]);

    let mut scene = one_waits(Variant::LiPull);
    scene.pulls(ANNA, with_bar(1, vitals(1, 1)), false);
    assert_eq!(scene.said(), [(ANNA, Nothing)]);
    scene.pulls(ANNA, with_bar(0, vitals(1, 1)), false);
    assert_eq!(scene.said(), [(ANNA, Offer(2))]);
}

#[test]
fn only_the_node_with_most_to_do_of_all_around_pushes_to_balance() {
    // Nobody around has room at once; here twelve cores are asked for. On Bert's machine a job is less of a load than here:
    // whoever sends him one makes all loads together less.
    let busiest = |others: u32| {
        let mut scene = Scene::new(Variant::LiqPush);
        (1..=3).for_each(|number| scene.comes(number, 4));
        scene.tells(ANNA, vitals(0, others));
        scene.tells(BERT, with_cores(8, vitals(0, 1)));
        scene.round();
        scene.said()
    };
    assert_eq!(busiest(9), SILENCE);
    assert_eq!(busiest(8), SILENCE, "as much is not most");
    assert_eq!(busiest(7), [(BERT, OfferToWait(2))], "one, to who has least to do");
}

#[test]
fn nothing_is_pushed_that_would_not_even_loads_out() {
    let mut scene = Scene::new(Variant::LiqPush);
    scene.comes(1, 4);
    scene.comes(2, 4);
    scene.tells(ANNA, vitals(0, 3));
    scene.round();
    assert_eq!(scene.said(), SILENCE, "Anna would have more to do then than this node has now");
    scene.tells(ANNA, vitals(0, 0));
    scene.round();
    assert_eq!(scene.said(), SILENCE, "they would only have changed places");
}

#[test]
fn node_with_least_to_do_pulls_to_balance_from_the_one_with_most() {
    let mut scene = Scene::new(Variant::LiqPull);
    scene.comes(1, 4);
    scene.tells(ANNA, vitals(0, 2));
    scene.tells(BERT, vitals(0, 5));
    scene.round();
    assert_eq!(scene.said(), [(BERT, PullToBalance)]);
    scene.tells(CARL, vitals(1, 0));
    scene.round();
    assert_eq!(scene.said(), SILENCE, "Carl has less to do");
}

#[test]
fn who_asks_to_balance_gets_a_job_only_if_that_evens_loads_out() {
    let mut scene = Scene::new(Variant::LiqPull);
    (1..=3).for_each(|number| scene.comes(number, 4));
    scene.pulls(ANNA, vitals(0, 7), true);
    scene.pulls(ANNA, vitals(0, 1), true);
    assert_eq!(scene.said(), [(ANNA, Nothing), (ANNA, OfferToWait(2))]);
}

#[test]
fn product_falls_when_loads_even_out() {
    let around = Around([(NodeId(1), [8, 0, 0, 0]), (NodeId(2), [0, 2, 0, 0])].into());
    assert_eq!(around.product(&[]), 80);
    let moved = [(NodeId(1), [6, 0, 0, 0]), (NodeId(2), [2, 4, 0, 0])];
    assert_eq!(around.product(&moved), 60);
    assert_eq!(load(&[1, 5, 2, 0]), 5);
}
