//! What pictures promise: the same bytes, no panic on odd data, nothing lost that can be seen.

use super::*;

fn wave(count: usize) -> Vec<(f64, f64)> {
    (0..count).map(|place| (place as f64 * 60.0, (place as f64 / 500.0).sin() + (place % 7) as f64)).collect()
}

fn layers(points: &[(f64, f64)]) -> Vec<Layer> {
    let points = || points.to_vec();
    vec![
        Layer::line("line", points()),
        Layer::step("step", points()),
        Layer::points("points", points()),
        Layer::bars("bars", points()),
        Layer::bars("spread", points())
            .whiskers(points().into_iter().map(|(x, y)| (x, y / 2.0, y * 2.0)).collect()),
        Layer::band("band", points().into_iter().map(|(x, y)| (x, y / 2.0, y))),
        Layer::new("rule", Kind::Rule, points().into_iter().take(3).collect()),
        Layer::new("upright", Kind::Upright, points().into_iter().take(3).collect()),
    ]
}

fn figure(layers: Vec<Layer>) -> Figure {
    let figure = Figure::new("A figure", Axis::new("time").unit(Unit::Time), Axis::new("y"));
    Figure { layers, ..figure }
}

#[test]
fn same_figure_gives_the_same_bytes() {
    let make = || figure(layers(&wave(3_000))).subtitle("what to know").right(Axis::new("other").log());
    assert_eq!(make().svg(), make().svg());
    assert_eq!(make().png(2.0).unwrap(), make().png(2.0).unwrap());
}

#[test]
fn whiskers_are_drawn_and_make_room_for_themselves() {
    let bars = || Layer::bars("bars", vec![(0.0, 2.0), (1.0, 3.0)]);
    let plain = figure(vec![bars()]).svg();
    let spread = figure(vec![bars().whiskers(vec![(0.0, 1.0, 40.0)])]).svg();
    let nothing = figure(vec![bars().whiskers(vec![(0.0, 2.0, 2.0), (1.0, f64::NAN, 3.0)])]).svg();
    assert_eq!(plain, nothing, "what does not spread has none");
    assert!(spread.contains(">40<") && !plain.contains(">40<"), "the axis reaches as far as they do");
}

#[test]
fn no_point_one_point_and_odd_points_are_fine() {
    for points in [
        vec![],
        vec![(0.0, 0.0)],
        vec![(5.0, -3.0)],
        vec![(1e300, 1e-300)],
        vec![(f64::NAN, 1.0), (1.0, f64::INFINITY), (2.0, 2.0), (f64::NEG_INFINITY, f64::NAN)],
        vec![(1.0, 1.0), (1.0, 1.0)],
        vec![(-1.0, -5.0), (1.0, 5.0)],
    ] {
        for (x, y) in [
            (Axis::new("x"), Axis::new("y")),
            (Axis::new("x").log(), Axis::new("y").log()),
            (Axis::new("x").unit(Unit::Time).log(), Axis::new("y").unit(Unit::Bytes)),
            (Axis::new("x").names(["a", "b"]), Axis::new("y").unit(Unit::Share).bounds(0.0, 1.0)),
            (Axis::new("x").names([""; 0]), Axis::new("y").bounds(3.0, 3.0)),
        ] {
            let figure = Figure { layers: layers(&points), ..Figure::new("t", x, y) };
            let svg = figure.svg();
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{points:?}: {svg}");
            assert!(figure.png(1.0).is_ok(), "{points:?}");
        }
    }
    assert!(figure(vec![]).svg().contains("no data"));
    assert!(!figure(layers(&wave(1))).svg().contains("no data"));
}

#[test]
fn hundred_thousand_points_stay_small() {
    for layer in layers(&wave(100_000)) {
        let name = layer.name.clone();
        let svg = figure(vec![layer]).svg();
        assert!(svg.len() < 300_000, "{name}: {} bytes", svg.len());
    }
}

#[test]
fn words_are_escaped() {
    let evil = "<script>&\"'\u{1}";
    let layer = Layer::line(evil, vec![(0.0, 1.0)]);
    let figure = Figure::new(evil, Axis::new(evil).names([evil]), Axis::new(evil)).subtitle(evil).with(layer);
    let svg = figure.svg();
    assert!(!svg.contains("<script"));
    assert_eq!(svg.matches("&lt;script&gt;&amp;&quot;&#39;\u{fffd}").count(), 7);
}

#[test]
fn thinned_line_keeps_its_extremes_and_ends() {
    let mut points: Vec<(f64, f64)> = (0..90_000).map(|place| (f64::from(place) / 150.0, 100.0)).collect();
    points[41_234].1 = 3.0;
    points[41_235].1 = 250.0;
    points[77_777].1 = 1.0;
    let thinned = thin::line(&points);
    assert!(thinned.len() <= 600 * 4, "{}", thinned.len());
    for kept in [0, 41_234, 41_235, 77_777, 89_999] {
        assert!(thinned.contains(&points[kept]), "{kept}");
    }
    assert!(thinned.is_sorted_by(|one, next| one.0 <= next.0), "a line does not turn back");
    assert_eq!(thin::line(&points[..4]), points[..4]);
}

#[test]
fn thinned_marks_and_bands_keep_their_extremes() {
    let mut points: Vec<(f64, f64)> =
        (0..50_000).map(|place| (f64::from(place % 600), f64::from(place % 271))).collect();
    points.extend([(-9.0, 20.0), (700.0, 20.0), (20.0, -9.0), (20.0, 900.0)]);
    let thinned = thin::marks(&points, 3.5, 2_000);
    assert!(thinned.len() < 20_000);
    for extreme in &points[50_000..] {
        assert!(thinned.contains(extreme), "{extreme:?}");
    }

    let band: Vec<(f64, f64, f64)> = (0..5_000)
        .map(|place| (f64::from(place) / 10.0, if place == 777 { 1.0 } else { 50.0 }, 60.0))
        .collect();
    let thinned = thin::band(&band);
    assert!(thinned.len() <= 1_000);
    assert!(thinned.iter().any(|&(x, top, _)| top == 1.0 && x.floor() == 77.0));
}

#[test]
fn axes_speak_in_human_units() {
    let marks = |axis: Axis, low: f64, high: f64| {
        let ruler = axis::Ruler::new(&axis, Some((low, high)), true, 6);
        ruler.marks().iter().map(|(_, text)| text.clone()).collect::<Vec<_>>().join(" | ")
    };
    let plain = || Axis::new("");
    let time = || Axis::new("").unit(Unit::Time);
    assert_eq!(marks(plain(), 0.0, 5.0), "0 | 1 | 2 | 3 | 4 | 5");
    assert_eq!(marks(plain(), 0.0, 48_000.0), "0 | 10 k | 20 k | 30 k | 40 k | 50 k");
    assert_eq!(marks(plain(), 0.0, 2_300_000.0), "0 | 0.5 M | 1.0 M | 1.5 M | 2.0 M | 2.5 M");
    assert_eq!(marks(plain(), -0.2, 0.2), "-0.2 | -0.1 | 0 | 0.1 | 0.2");
    assert_eq!(marks(plain().unit(Unit::Share), 0.0, 1.0), "0 % | 20 % | 40 % | 60 % | 80 % | 100 %");
    assert_eq!(
        marks(plain().unit(Unit::Bytes), 0.0, 2_500.0),
        "0 | 0.5 kB | 1.0 kB | 1.5 kB | 2.0 kB | 2.5 kB"
    );
    assert_eq!(
        marks(time(), 0.0, 3.0 * 3_600.0),
        "0 | 30 min | 60 min | 90 min | 120 min | 150 min | 180 min"
    );
    assert_eq!(marks(time(), 0.0, 86_400.0), "0 | 6 h | 12 h | 18 h | 24 h");
    assert_eq!(marks(time(), 0.0, 9.0 * 86_400.0), "0 | 2 d | 4 d | 6 d | 8 d | 10 d");
    assert_eq!(marks(time(), 0.0, 800.0 * 86_400.0), "0 | 6 mo | 12 mo | 18 mo | 24 mo | 30 mo");
    assert_eq!(marks(time(), 1.7, 2.3), "1.7 s | 1.8 s | 1.9 s | 2.0 s | 2.1 s | 2.2 s | 2.3 s");
    assert_eq!(marks(time(), 0.0, 0.2), "0 | 50 ms | 100 ms | 150 ms | 200 ms");
    assert_eq!(marks(plain().log(), 3.0, 40_000.0), "1 | 10 | 100 | 1000 | 10 k | 100 k");
    assert_eq!(marks(plain().log(), 1.0, 50.0), "1 | 10 | 100");
    assert_eq!(
        marks(time().log(), 0.5, 90_000.0),
        "100 ms | 1 s | 10 s | 1 min | 10 min | 1 h | 10 h | 1 d | 10 d"
    );
}

#[test]
fn image_of_a_size_that_nobody_means_is_refused() {
    for scale in [0.0, -1.0, f32::NAN, f32::INFINITY, 1e6] {
        assert!(matches!(figure(vec![]).png(scale), Err(Error::Size { .. })), "{scale}");
    }
}

#[test]
fn gantt_shows_the_runs_of_its_window() {
    let run = |lane, job, start, end| Run { lane, job, start, end };
    let gantt = Gantt {
        title: "<runs>".to_owned(),
        subtitle: None,
        window: (100.0, 200.0),
        lanes: vec!["n1".to_owned(), "n2".to_owned()],
        runs: vec![
            run(0, 7, 90.0, 120.0),
            run(1, 7, 90.0, 120.0),
            run(1, 8, 120.0, 120.0001),
            run(0, 9, 0.0, 99.0),
            run(5, 10, 100.0, 200.0),
        ],
    };
    let svg = gantt.svg();
    assert!(svg.contains("job 7") && svg.contains("job 8") && svg.contains("&lt;runs&gt;"));
    assert!(!svg.contains("job 9") && !svg.contains("job 10"), "not in the window, not on a lane");
    assert_eq!(svg, gantt.svg());
    assert!(gantt.png(2.0).is_ok());
    let empty = Gantt { lanes: vec![], runs: vec![], ..gantt };
    assert!(empty.svg().ends_with("</svg>\n"));
    assert!(empty.png(1.0).is_ok());
}

#[test]
fn a_short_logarithmic_axis_can_still_be_read() {
    let marks = |unit: Unit, low: f64, high: f64| {
        let ruler = axis::Ruler::new(&Axis::new("").unit(unit).log(), Some((low, high)), false, 8);
        ruler.marks().iter().map(|(_, text)| text.clone()).collect::<Vec<_>>().join(" | ")
    };
    assert_eq!(marks(Unit::Plain, 21.0, 93.0), "40 | 60 | 80");
    assert_eq!(marks(Unit::Plain, 1.0, 16.0), "1 | 2 | 5 | 10");
    assert_eq!(marks(Unit::Time, 7.0, 13.0), "7 s | 8 s | 9 s | 10 s | 11 s | 12 s | 13 s");
    assert_eq!(marks(Unit::Time, 100.0, 720.0), "2 min | 5 min | 10 min");
}

#[test]
fn band_has_the_colour_of_the_line_on_top_of_it() {
    let line = |name: &str| Layer::line(name, wave(50));
    let band = || Layer::band("", wave(50).into_iter().map(|(x, y)| (x, y / 2.0, y)));
    let uses = |layers: Vec<Layer>| {
        let svg = figure(layers).svg();
        (0..4).filter(|number| svg.contains(&format!("-s{number}\""))).collect::<Vec<_>>()
    };
    assert_eq!(uses(vec![line("a"), line("b")]), [0, 1]);
    assert_eq!(uses(vec![band(), line("a"), band(), line("b")]), [0, 1]);
}
