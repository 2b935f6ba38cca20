//! What every plan keeps to.

use super::*;
use crate::network::partition::Direction;
use crate::network::{self, Carried};
use crate::streams::{Purpose, stream};

#[derive(Deserialize)]
struct Scenario {
    faults: Config,
}

fn config(toml: &str) -> Config {
    toml::from_str::<Scenario>(toml).unwrap().faults
}

fn plan(toml: &str, nodes: usize, seed: u64) -> Plan {
    Plan::generate(&config(toml), nodes, seed).unwrap()
}

fn node_of(fault: &Fault) -> Option<usize> {
    match fault {
        Fault::Crash { node, .. }
        | Fault::Restart { node }
        | Fault::Leave { node }
        | Fault::Join { node }
        | Fault::Clock { node, .. } => Some(*node),
        Fault::Slow(spell) => Some(spell.node),
        Fault::SlowDisk(spell) => Some(spell.node),
        Fault::Cut(_) | Fault::Storm { .. } => None,
    }
}

fn crashes(plan: &Plan) -> Vec<&Event> {
    plan.events().iter().filter(|event| matches!(event.fault, Fault::Crash { .. })).collect()
}

const CHURN: &str = "[faults]\nfrom_s = 1000\nuntil_s = 11000\n\
    [faults.churn]\nmean_time_to_failure_s = 1000\nmean_time_to_repair_s = 100\n";

#[test]
fn none_is_no_faults() {
    for toml in ["faults = 'none'", "[faults]", "[faults]\npreset = 'none'\nuntil_s = 100"] {
        let plan = plan(toml, 10, 1);
        assert_eq!((plan.events(), plan.nodes(), plan.healed_from()), (&[][..], 10, Time::ZERO));
        assert!(plan.clocks().is_empty());
    }
}

#[test]
fn nodes_fail_and_are_repaired_as_often_as_configured() {
    let plan = plan(CHURN, 500, 1);
    // Up 1,000 s and down 100 s on average: 10,000 s hold 9.09 failures, and a little more from starting up.
    let failures = crashes(&plan).len() as f64 / 500.0;
    assert!((8.9..9.4).contains(&failures), "{failures} failures a node");

    let mut down_since = BTreeMap::new();
    let mut down = Vec::new();
    for Event { at, fault } in plan.events() {
        match fault {
            Fault::Crash { node, .. } => {
                assert_eq!(down_since.insert(*node, *at), None, "crashed while down")
            }
            Fault::Restart { node } => down.push(at.since(down_since.remove(node).unwrap()).as_secs_f64()),
            other => panic!("churn gave {other:?}"),
        }
    }
    assert!(down_since.is_empty(), "nodes are down at the end");
    let mean = down.iter().sum::<f64>() / down.len() as f64;
    assert!((94.0..104.0).contains(&mean), "down {mean} s");
}

#[test]
fn shares_of_crashes_are_met() {
    let plan = plan(&format!("{CHURN}gone = 0.02\ndisk_lost = 0.2\nmidway = 0.4\n"), 1_000, 1);
    let crashes = crashes(&plan);
    let share = |wanted: fn(&Fault) -> bool| {
        crashes.iter().filter(|event| wanted(&event.fault)).count() as f64 / crashes.len() as f64
    };
    let lost = share(|fault| matches!(fault, Fault::Crash { disk: Disk::Lost, .. }));
    assert!((0.185..0.215).contains(&lost), "{lost} lost their disk");
    let midway = share(|fault| matches!(fault, Fault::Crash { after_effects: Some(0..8), .. }));
    assert!((0.38..0.42).contains(&midway), "{midway} midway");
    let left = plan.events().iter().filter(|event| matches!(event.fault, Fault::Leave { .. })).count() as f64;
    let gone = left / (crashes.len() as f64 + left);
    assert!((0.015..0.025).contains(&gone), "{gone} gone for good");
}

#[test]
fn node_that_left_suffers_nothing_more_of_churn() {
    let plan = plan(&format!("{CHURN}gone = 0.3\n"), 200, 1);
    let mut gone = BTreeMap::new();
    for event in plan.events() {
        let node = node_of(&event.fault).unwrap();
        assert!(!gone.contains_key(&node), "{event:?} after node {node} left");
        if matches!(event.fault, Fault::Leave { .. }) {
            gone.insert(node, event.at);
        }
    }
    assert!(gone.len() > 100);
}

#[test]
fn everything_random_keeps_to_the_window_and_heals_at_its_end() {
    for seed in 0..20 {
        let plan = plan("[faults]\npreset = 'heavy'\nfrom_s = 100\nuntil_s = 2000", 50, seed);
        let (from, until) = (Time::from_secs(100), Time::from_secs(2_000));
        assert!(plan.events().iter().all(|event| from <= event.at && event.over() <= until));
        assert!(plan.events().is_sorted_by_key(|event| event.at));
        assert_eq!(plan.healed_from(), until);

        let mut down = BTreeMap::new();
        for event in plan.events() {
            match event.fault {
                Fault::Crash { node, .. } => {
                    assert!(down.insert(node, ()).is_none(), "seed {seed}: {event:?}")
                }
                Fault::Restart { node } => assert!(down.remove(&node).is_some(), "seed {seed}: {event:?}"),
                _ => {}
            }
        }
        assert!(down.is_empty(), "seed {seed}: down at the end: {down:?}");
    }
}

#[test]
fn heavy_has_every_kind_of_fault() {
    let plan = plan("faults = 'heavy'", 50, 1);
    let has = |wanted: fn(&Fault) -> bool| plan.events().iter().any(|event| wanted(&event.fault));
    assert!(has(|fault| matches!(fault, Fault::Crash { after_effects: Some(_), .. })));
    assert!(has(|fault| matches!(fault, Fault::Crash { after_effects: None, .. })));
    assert!(has(|fault| matches!(fault, Fault::Slow(_))));
    assert!(has(|fault| matches!(fault, Fault::SlowDisk(_))));
    assert!(has(|fault| matches!(fault, Fault::Clock { change: Change::Jump { .. }, .. })));
    assert!(has(|fault| matches!(fault, Fault::Clock { change: Change::Drift { .. }, .. })));
    assert!(has(|fault| matches!(fault, Fault::Storm { .. })));
    assert!(has(|fault| matches!(fault, Fault::Cut(cut) if cut.direction == Direction::Both)));
    assert!(has(|fault| matches!(fault, Fault::Cut(cut) if cut.direction != Direction::Both)));
}

#[test]
fn the_same_seed_gives_the_same_plan() {
    assert_eq!(plan("faults = 'heavy'", 50, 7), plan("faults = 'heavy'", 50, 7));
    assert_ne!(plan("faults = 'heavy'", 50, 7), plan("faults = 'heavy'", 50, 8));
}

#[test]
fn one_more_node_leaves_the_luck_of_the_others() {
    let mut config = config("faults = 'heavy'").spelt_out();
    // Whom a burst strikes depends on the number of nodes: a share of them is meant.
    config.bursts = None;
    let of_the_first_50 = |plan: &Plan| -> Vec<Event> {
        let of_them = |event: &&Event| node_of(&event.fault).is_some_and(|node| node < 50);
        plan.events().iter().filter(of_them).cloned().collect()
    };
    let (few, more) = (Plan::generate(&config, 50, 3).unwrap(), Plan::generate(&config, 51, 3).unwrap());
    assert_eq!(of_the_first_50(&few), of_the_first_50(&more));
    assert_eq!(few.offsets_us, more.offsets_us.range(..50).map(|(node, us)| (*node, *us)).collect());
}

#[test]
fn one_process_does_not_change_the_luck_of_another() {
    let alone = plan(CHURN, 20, 3);
    let both = plan(&format!("{CHURN}[faults.slow]\nevery_s = 500\nlength_s = 50\nfactor = 3\n"), 20, 3);
    let crashes_of_both: Vec<_> = crashes(&both);
    assert_eq!(crashes(&alone), crashes_of_both);
    assert!(both.events().len() > alone.events().len());
}

#[test]
fn burst_strikes_its_share_at_once() {
    let toml = "[faults]\nuntil_s = 1000\n[faults.bursts]\nevery_s = 300\nshare = 0.25\nmean_time_to_repair_s = 0.001\n";
    let plan = plan(toml, 100, 2);
    let mut struck: BTreeMap<Time, usize> = BTreeMap::new();
    for crash in crashes(&plan) {
        *struck.entry(crash.at).or_default() += 1;
    }
    assert!(!struck.is_empty());
    assert!(struck.values().all(|&count| count == 25), "{struck:?}");
}

#[test]
fn random_cuts_last_and_come_as_configured() {
    let toml = "[faults]\nfrom_s = 0\nuntil_s = 1000000\n\
        [faults.partitions]\nevery_s = 1000\nlength_s = 50\nshare_max = 0.3\none_way = 0.4\n";
    let plan = plan(toml, 40, 1);
    let cuts: Vec<&Cut> = plan
        .events()
        .iter()
        .map(|event| match &event.fault {
            Fault::Cut(cut) => cut,
            other => panic!("partitions gave {other:?}"),
        })
        .collect();
    assert!((900..1_100).contains(&cuts.len()), "{} cuts", cuts.len());
    let length =
        cuts.iter().map(|cut| cut.until.since(cut.from).as_secs_f64()).sum::<f64>() / cuts.len() as f64;
    assert!((45.0..55.0).contains(&length), "{length} s each");
    let one_way =
        cuts.iter().filter(|cut| cut.direction != Direction::Both).count() as f64 / cuts.len() as f64;
    assert!((0.35..0.45).contains(&one_way), "{one_way} one way");
    for cut in cuts {
        let side = (0..40).filter(|&node| cut.side.has(node)).count();
        assert!((1..=12).contains(&side), "{side} nodes on the smaller side");
    }
}

#[test]
fn listed_faults_happen_as_listed() {
    let plan = plan(
        "[[faults.events]]\nfault = 'crash'\nat_s = 10\nnode = 1\nfor_s = 5\ndisk = 'lost'\nafter_effects = 2\n\
         [[faults.events]]\nfault = 'leave'\nat_s = 30\nnode = 2\n\
         [[faults.events]]\nfault = 'join'\nat_s = 20\n\
         [[faults.events]]\nfault = 'jump'\nat_s = 25\nnode = 3\nby_ms = -1.5\n\
         [[faults.events]]\nfault = 'drift'\nat_s = 26\nnode = 0\nfor_s = 4\nppm = 50\n",
        3,
        1,
    );
    let story: Vec<String> =
        plan.events().iter().map(|event| format!("{} {:?}", event.at, event.fault)).collect();
    assert_eq!(
        story,
        [
            "10.0s Crash { node: 1, after_effects: Some(2), disk: Lost }",
            "15.0s Restart { node: 1 }",
            "20.0s Join { node: 3 }",
            "25.0s Clock { node: 3, change: Jump { by_us: -1500 } }",
            "26.0s Clock { node: 0, change: Drift { ppm: 50 } }",
            "30.0s Clock { node: 0, change: Drift { ppm: 0 } }",
            "30.0s Leave { node: 2 }",
        ]
    );
    assert_eq!(plan.nodes(), 4);
    assert_eq!(plan.healed_from(), Time::from_secs(30));
    let clocks = plan.clocks();
    assert_eq!(clocks.keys().copied().collect::<Vec<_>>(), [0, 3]);
    assert_eq!(clocks[&0].local(Time::from_secs(40)), Time::from_micros(40_000_200));
}

#[test]
fn plan_disturbs_network_and_disks_while_its_faults_last() {
    let plan = plan(
        "[faults]\nfrom_s = 100\nuntil_s = 200\nnoise = { loss = 1.0 }\n\
         [[faults.events]]\nfault = 'cut'\nat_s = 10\nfor_s = 5\nname = 'a'\ngroup = { nodes = [0] }\n\
         [[faults.events]]\nfault = 'slow'\nat_s = 20\nfor_s = 5\nnode = 0\nfactor = 3\n\
         [[faults.events]]\nfault = 'slow-disk'\nat_s = 20\nfor_s = 5\nnode = 0\nfsync_ms = 7\n",
        3,
        1,
    );
    let network: network::Config = toml::from_str("latency = { model = 'constant', delay_ms = 10 }").unwrap();
    let network = plan.disturb(Network::build(&network, plan.nodes(), 1).unwrap());

    let mut chance = stream(1, Purpose::Carriage, 0);
    let mut fate = |secs| network.carry(Time::from_secs(secs), 0, 1, &mut chance);
    let after = |millis| Carried::Once(Span::from_millis(millis));
    assert_eq!([fate(9), fate(10), fate(15)], [after(10), Carried::Lost, after(10)]);
    assert_eq!([fate(20), fate(25)], [after(30), after(10)]);
    assert_eq!([fate(100), fate(199), fate(200)], [Carried::Lost, Carried::Lost, after(10)]);
    assert_eq!(network.calm_from(), plan.healed_from());

    let disks = plan.disks();
    assert_eq!(disks.at(0, Time::from_secs(22)), Some(Span::from_millis(7)));
    assert_eq!(disks.at(0, Time::from_secs(25)), None);
}

#[test]
fn new_nodes_come_with_luck_of_their_own_from_when_they_join() {
    let plan = plan(&format!("{CHURN}[faults.joins]\nevery_s = 500\n"), 10, 1);
    let joins: BTreeMap<usize, Time> = plan
        .events()
        .iter()
        .filter_map(|event| match event.fault {
            Fault::Join { node } => Some((node, event.at)),
            _ => None,
        })
        .collect();
    assert!((10..30).contains(&joins.len()), "{} joined", joins.len());
    assert!(joins.keys().copied().eq(10..plan.nodes()));
    let crashed: Vec<_> =
        crashes(&plan).iter().map(|event| (node_of(&event.fault).unwrap(), event.at)).collect();
    assert!(crashed.iter().any(|(node, _)| *node >= 10));
    assert!(crashed.iter().all(|(node, at)| joins.get(node).is_none_or(|joined| joined < at)));
}

#[test]
fn nonsense_is_refused_by_field() {
    let refused = |toml: &str| Plan::generate(&config(toml), 3, 1).unwrap_err().to_string();
    let cases = [
        ("[faults]\nfrom_s = 5\nuntil_s = 5", "faults.until_s: must be later than from_s: 5.0s after 5.0s"),
        (
            "[faults.churn]\nmean_time_to_failure_s = 0\nmean_time_to_repair_s = 1",
            "faults.churn.mean_time_to_failure_s: must be longer than nothing, not 0 seconds",
        ),
        (
            "[faults.churn]\nmean_time_to_failure_s = 0.0001\nmean_time_to_repair_s = 0.0001",
            "faults.churn.mean_time_to_failure_s: gives more than 10000000 faults: make it longer, or the window shorter",
        ),
        (
            "[faults.clocks]\ndrift_ppm = 4000000000",
            "faults.clocks.drift_ppm: must be at most 100000 either way, not 2147483647",
        ),
        (
            "[[faults.events]]\nfault = 'leave'\nat_s = 1\nnode = 3",
            "faults.events[0].node: node 3 is not among the 3, which count from 0",
        ),
        (
            "[[faults.events]]\nfault = 'join'\nat_s = 5\n[[faults.events]]\nfault = 'leave'\nat_s = 1\nnode = 3",
            "faults.events[1].node: node 3 joins only at 5.0s, after this fault at 1.0s",
        ),
    ];
    for (toml, error) in cases {
        assert_eq!(refused(toml), error);
    }
}

#[test]
fn unknown_names_are_refused_with_the_known_ones() {
    let refused = |toml: &str| toml::from_str::<Scenario>(toml).map(|_| ()).unwrap_err().to_string();
    let error = refused("faults = 'medium'");
    assert!(
        error.contains("`medium`") && error.contains("expected one of `none`, `light`, `heavy`"),
        "{error}"
    );
    assert!(refused("[faults]\nchurm = 3").contains("unknown field `churm`"));
    assert!(refused("[faults.churn]\nrate = 3").contains("unknown field `rate`"));
    let error = refused("[[faults.events]]\nfault = 'leave'\nat_s = 1\nnode = 1\nfor_s = 3");
    assert!(error.contains("unknown field `for_s`"), "{error}");
    let error = refused("faults = 7");
    assert!(error.contains("a table of faults, or one of"), "{error}");
}
