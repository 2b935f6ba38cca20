//! The command that shows a run again, as one pastes it into a shell.

use std::fmt;

use crate::scenario::Overrides;
use crate::workload::Length;

/// A command, built word by word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay(String);

impl Replay {
    /// What the simulator is asked for, such as `run`.
    pub fn sim(verb: &str) -> Replay {
        Replay(format!("shoal sim {verb}"))
    }

    /// With one word more.
    pub fn word(mut self, word: impl fmt::Display) -> Replay {
        self.0 += " ";
        self.0 += &quoted(&word.to_string());
        self
    }

    /// With a flag and its value, if there is one.
    pub fn flag(self, name: &'static str, value: Option<impl fmt::Display>) -> Replay {
        match value {
            None => self,
            Some(value) => self.word(name).word(value),
        }
    }

    /// With a flag that has no value, if it is set.
    pub fn switch(self, name: &'static str, set: bool) -> Replay {
        if set { self.word(name) } else { self }
    }

    /// With what the command line says in place of the scenario, but for the seed, which the scenario may say.
    pub fn over(self, overrides: &Overrides) -> Replay {
        let Overrides { nodes, recipe, seed: _, trace, length, drop_bad_lines, faults, set } = overrides;
        let length = length.map(|length| match length {
            Length::Requested => "requested",
            Length::Run => "run",
        });
        let told = self
            .flag("--trace", trace.as_ref().map(|file| file.display()))
            .flag("--length", length)
            .switch("--drop-bad-lines", *drop_bad_lines)
            .flag("--recipe", recipe.as_ref())
            .flag("--nodes", nodes.as_ref())
            .flag("--faults", faults.as_ref());
        set.iter().fold(told, |told, (key, value)| told.flag("--set", Some(format!("{key}={value}"))))
    }
}

impl fmt::Display for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A word as a shell takes it for one.
fn quoted(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./+:=@%".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// The words of a command as a shell takes them apart.
#[cfg(test)]
pub(crate) fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote, mut letters) = (Vec::new(), None, false, command.chars());
    while let Some(letter) = letters.next() {
        match letter {
            '\'' => {
                quote = !quote;
                word.get_or_insert_with(String::new);
            }
            ' ' if !quote => words.extend(word.take()),
            '\\' if !quote => word.get_or_insert_with(String::new).extend(letters.next()),
            letter => word.get_or_insert_with(String::new).push(letter),
        }
    }
    words.extend(word);
    words
}

/// The value of a flag of a command.
#[cfg(test)]
pub(crate) fn value<'w>(words: &'w [String], flag: &str) -> Option<&'w str> {
    words.iter().position(|word| word == flag).and_then(|at| words.get(at + 1)).map(String::as_str)
}

/// Demands that a text can be pasted: a command of the simulator, with flags that there are.
#[cfg(test)]
pub(crate) fn assert_is_command(command: &str) -> Vec<String> {
    // The names are those of `crates/cli/src/commands/sim`, whose tests run such commands.
    const RUN: [&str; 9] = [
        "--trace",
        "--length",
        "--drop-bad-lines",
        "--recipe",
        "--nodes",
        "--seed",
        "--faults",
        "--threads",
        "--planted",
    ];
    const SWEEP: [&str; 9] = [
        "--trace",
        "--length",
        "--drop-bad-lines",
        "--recipe",
        "--nodes",
        "--seed",
        "--faults",
        "--threads",
        "--set",
    ];
    const REPRODUCE: [&str; 7] =
        ["--only", "--quick", "--seeds", "--trace", "--hosts", "--threads", "--tiny"];
    let words = words(command);
    assert_eq!(words[..2], ["shoal", "sim"], "{command}");
    let known: &[&str] = match words[2].as_str() {
        "run" => &RUN,
        "sweep" => &SWEEP,
        "reproduce" => &REPRODUCE,
        other => panic!("{command}: {other}"),
    };
    for flag in words.iter().filter(|word| word.starts_with("--")) {
        assert!(known.contains(&flag.as_str()), "{command}: {flag}");
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_taken_apart_as_they_were_put_together() {
        let all = ["s.toml", "a b", "", "it's", "(x)", "a=\"b\"", "--set", "é"];
        let command = all.iter().fold(Replay::sim("run"), |command, word| command.word(word)).to_string();
        assert_eq!(words(&command)[..3], ["shoal", "sim", "run"]);
        assert_eq!(words(&command)[3..], all, "{command}");
    }

    #[test]
    fn all_that_stands_in_place_of_a_scenario_is_told_but_the_seed() {
        let overrides = Overrides {
            nodes: Some(7),
            recipe: Some("asap".to_owned()),
            seed: Some(3),
            trace: Some("my trace.swf".into()),
            length: Some(Length::Run),
            drop_bad_lines: true,
            faults: Some("light".to_owned()),
            set: vec![
                ("overlay.cache".to_owned(), "10".to_owned()),
                ("start".to_owned(), "\"graph\"".to_owned()),
            ],
        };
        let command = Replay::sim("sweep").word("s.toml").over(&overrides).to_string();
        assert_eq!(
            command,
            "shoal sim sweep s.toml --trace 'my trace.swf' --length run --drop-bad-lines --recipe asap --nodes 7 \
             --faults light --set overlay.cache=10 --set 'start=\"graph\"'"
        );
        assert_is_command(&command);
    }
}
