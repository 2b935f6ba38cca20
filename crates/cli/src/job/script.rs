//! Scripts that say what they need: lines that begin with `#SHOAL` hold flags, before the first line that does something.

use clap::{Args, CommandFactory, FromArgMatches};

use super::Flags;
use crate::error::Error;

/// What such a line begins with.
const MARK: &str = "#SHOAL";

#[derive(clap::Parser)]
#[command(no_binary_name = true, disable_help_flag = true, override_usage = "#SHOAL [OPTIONS]")]
struct Line {
    #[command(flatten)]
    flags: Flags,
}

/// The flags in the lines of a script.
pub(super) fn flags(name: &str, text: &str) -> Result<Flags, Error> {
    let mut all = Flags::default();
    for (number, line) in (1..).zip(text.lines()) {
        if !line.is_empty() && !line.starts_with('#') {
            break;
        }
        let Some(rest) =
            line.strip_prefix(MARK).filter(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
        else {
            continue;
        };
        let words = words(rest)
            .ok_or_else(|| Error::config(format!("{name}, line {number}: a quote that does not end")))?;
        let matches = Line::command().try_get_matches_from(words).map_err(|error| {
            let error = error.to_string();
            let said = error.strip_prefix("error: ").unwrap_or(&error);
            let said = said.split("\n\nUsage").next().unwrap_or(said).trim_end();
            Error::config(format!("{name}, line {number}: {said}"))
        })?;
        let line = Line::from_arg_matches(&matches).map_err(|error| Error::config(error.to_string()))?;
        all = all.with(line.flags);
    }
    Ok(all)
}

/// The words of a line as a shell tells them apart, without its other tricks; none if a quote does not end.
fn words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let (mut word, mut quote) = (None::<String>, None);
    for letter in line.chars() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (Some(_), letter) => word.get_or_insert_default().push(letter),
            (None, '\'' | '"') => {
                word.get_or_insert_default();
                quote = Some(letter);
            }
            (None, letter) if letter.is_whitespace() => words.extend(word.take()),
            // The rest is for who reads the script.
            (None, '#') if word.is_none() => return Some(words),
            (None, letter) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

/// The flags must be usable apart from a program, which this checks when it is compiled.
const _: fn(clap::Command) -> clap::Command = Flags::augment_args;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_told_apart_as_a_shell_does() {
        let read = |line| words(line);
        assert_eq!(
            read(" --name 'two words' --time=1h # why").unwrap(),
            ["--name", "two words", "--time=1h"]
        );
        assert_eq!(read("--name \"\"").unwrap(), ["--name", ""]);
        assert_eq!(read("--name 'open"), None);
    }

    #[test]
    fn lines_are_read_up_to_the_first_that_does_something() {
        let text = "#!/bin/sh\n#SHOAL --nodes 2 --time 1h\n\n# a comment\n#SHOAL --time 2h\necho\n#SHOAL --nodes 9\n";
        let job = flags("job.sh", text).unwrap().apply(shoal_model::Job::script(text)).unwrap().0;
        assert_eq!(job.nodes.get(), 2);
        assert_eq!(job.limit, Some(shoal_model::Span::from_hours(2)));
    }

    #[test]
    fn wrong_line_is_named_with_its_number() {
        let error = format!("{:?}", flags("job.sh", "#!/bin/sh\n#SHOAL --nodse 2\n").unwrap_err());
        assert!(error.contains("job.sh, line 2") && error.contains("--nodes"), "{error}");
        let error = format!("{:?}", flags("job.sh", "#SHOAL --time 0x\n").unwrap_err());
        assert!(error.contains("line 1"), "{error}");
    }
}
