//! `shoal sim reproduce` as a user meets it: what it writes, and how it refuses.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};

fn shoal(home: &Path, arguments: &[&str]) -> Output {
    let arguments = [&["sim", "reproduce"], arguments].concat();
    Command::new(env!("CARGO_BIN_EXE_shoal")).current_dir(home).args(arguments).output().unwrap()
}

/// Runs a command that must be refused, and returns what it says.
fn refused(home: &Path, arguments: &[&str]) -> String {
    let before = fs::read_dir(home).unwrap().count();
    let output = shoal(home, arguments);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(output.stdout.is_empty(), "nothing on stdout");
    assert_eq!(fs::read_dir(home).unwrap().count(), before, "nothing is left behind");
    let (error, hints) = said.split_once('\n').unwrap();
    assert!(hints.lines().all(|line| line.starts_with("hint: ")), "one line of error: {said}");
    error.to_owned()
}

/// A line of a trace in SWF.
fn job(id: u32, at: u32, width: u32) -> String {
    format!("{id} {at} -1 600 {width} -1 -1 {width} 900 -1 1 1 1 -1 1 1 -1 -1\n")
}

#[test]
fn results_are_written_and_printed_alike() {
    let home = tempfile::tempdir().unwrap();
    let arguments = ["asap", "--tiny", "--only", "asap/table3", "--out", "r", "--json"];
    let output = shoal(home.path(), &arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let written = fs::read(home.path().join("r/results.json")).unwrap();
    let written: serde_json::Value = serde_json::from_slice(&written).unwrap();
    assert_eq!(printed["results"], written);
    let mut keys: Vec<&String> = written[0].as_object().unwrap().keys().collect();
    keys.sort();
    assert_eq!(keys, ["claim", "holds", "id", "ours", "paper", "spread", "unit"]);
    assert_eq!(
        (&written[0]["id"], &written[0]["paper"]),
        (&"asap/table3/grid5000/dynamic".into(), &936.0.into())
    );
    let timing = fs::read(home.path().join("r/timing.json")).unwrap();
    let timing: serde_json::Value = serde_json::from_slice(&timing).unwrap();
    assert_eq!(timing["runs"].as_array().unwrap().len(), 8);
}

#[test]
fn tables_fit_eighty_columns_and_claims_are_listed() {
    let home = tempfile::tempdir().unwrap();
    let output = shoal(home.path(), &["all", "--tiny"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    // The title of a paper, which ends with its year, alone may be longer.
    let is_title = |line: &&str| line.rsplit(", ").next().is_some_and(|year| year.parse::<u16>().is_ok());
    let wide: Vec<&str> =
        text.lines().filter(|line| !is_title(line)).filter(|line| line.chars().count() > 80).collect();
    assert!(wide.is_empty(), "{wide:?}");
    for words in ["Table I:", "Table II:", "Table III:", "does not hold", "holds", "tiny: 120 nodes"] {
        assert!(text.contains(words), "{words} is not in {text}");
    }
    assert!(home.path().join("out/all-001/results.json").exists());
}

#[test]
fn strict_ends_with_one_where_a_claim_does_not_hold() {
    let home = tempfile::tempdir().unwrap();
    // On so small a grid pull can never cost a hundred times what push does; what polls cost is known on any.
    let broken = ["asap", "--tiny", "--only", "asap/fig6/ratio_high"];
    assert_eq!(shoal(home.path(), &broken).status.code(), Some(0));
    let output = shoal(home.path(), &[&broken[..], &["--strict"]].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("1 of 1 claims do not hold"));
    let kept = ["asap", "--tiny", "--only", "asap/claim/poll_known", "--strict"];
    assert_eq!(shoal(home.path(), &kept).status.code(), Some(0));
}

#[test]
fn what_is_unknown_is_refused_with_what_is_known() {
    let home = tempfile::tempdir().unwrap();
    let error = refused(home.path(), &["dgs"]);
    assert_eq!(
        error,
        "error: no paper is called `dgs`: known are asap, aria, tri-pronged, proactive, and all"
    );
    let error = refused(home.path(), &["asap", "--only", "asap/table4"]);
    assert!(
        error.contains("no result of `asap` begins with `asap/table4`: known are asap/fig4a,"),
        "{error}"
    );
    let hosts = home.path().join("hosts.csv");
    fs::write(&hosts, "1,2,3\n").unwrap();
    let error = refused(home.path(), &["proactive", "--hosts", hosts.to_str().unwrap()]);
    assert!(error.contains("has 3 columns; without a heading they are `x,y` or `id,root,x,y`"), "{error}");
    let error = refused(home.path(), &["asap", "--seeds", "0"]);
    assert_eq!(error, "error: --seeds 0: must be at least 1");
}

#[test]
fn traces_that_make_no_sense_are_refused_before_anything_is_written() {
    let home = tempfile::tempdir().unwrap();
    let with = |text: &str, more: &[&str]| {
        fs::write(home.path().join("t.swf"), text).unwrap();
        refused(home.path(), &[&["asap", "--trace", "t.swf"], more].concat())
    };
    let error = with("; nothing\n", &[]);
    assert!(error.starts_with("error: t.swf: holds no job"), "{error}");
    let error = with(&(job(1, 0, 4) + &job(2, 400_000, 6_000)), &[]);
    assert!(error.starts_with("error: t.swf:2: ") && error.contains("6000"), "{error}");
    let error = with(&(job(1, 0, 4) + &job(2, 60, 4)), &["--only", "asap/table1"]);
    assert!(error.contains("length_days") && error.contains("shorter than one piece"), "{error}");
    // Of three days, the one in the middle by load has no job.
    let sparse = job(1, 0, 4) + &job(2, 86_400 * 3, 4);
    let error = with(&sparse, &["--only", "asap/table1"]);
    assert!(error.contains("no job is left of 2 after window of days"), "{error}");
    let error = refused(home.path(), &["asap", "--trace", "none.swf"]);
    assert!(error.starts_with("error: none.swf: cannot be opened"), "{error}");
}

#[test]
fn truncated_traces_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let text: String = (0..2_000).map(|id| job(id, id * 61, 1 + id % 7)).collect();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(text.as_bytes()).unwrap();
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 6);
    xz.write_all(text.as_bytes()).unwrap();
    for (packing, packed) in [("gzip", gzip.finish().unwrap()), ("xz", xz.finish().unwrap())] {
        let name = format!("cut.swf.{packing}");
        fs::write(home.path().join(&name), &packed[..packed.len() / 2]).unwrap();
        let error = refused(home.path(), &["asap", "--trace", &name]);
        assert!(error.contains(&format!("the {packing} data ends too early")), "{error}");
    }
}
