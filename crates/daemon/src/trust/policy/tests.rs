//! Rules as owners write them, and what comes of jobs.

use super::*;

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

/// What comes of a job of one core and an hour, of this user of that organisation, on a machine of lab-a.
fn verdict(policy: &Policy, user: &str, organisation: &str) -> Verdict {
    judged(policy, user, organisation, &Resources::cores(1), Span::from_hours(1), 0)
}

fn judged(
    policy: &Policy,
    user: &str,
    organisation: &str,
    resources: &Resources,
    limit: Span,
    beside: usize,
) -> Verdict {
    let (user, organisation) = (name(user), name(organisation));
    policy.judge(&Case {
        user: &user,
        key: None,
        organisation: Some(&organisation),
        resources,
        start: Time::ZERO,
        limit,
        beside,
        own: &[Some(name("lab-a"))],
    })
}

fn allows(policy: &Policy, user: &str, organisation: &str) -> bool {
    verdict(policy, user, organisation).answer().is_ok()
}

#[test]
fn own_organisation_is_allowed_and_others_denied_where_no_rule_speaks() {
    let policy = Policy::default();
    assert!(allows(&policy, "anybody", "lab-a"));
    assert_eq!(verdict(&policy, "anybody", "lab-b").answer(), Err(Denial::NoRule));
    assert!(allows(&Policy::read("default = 'allow'").unwrap(), "anybody", "lab-b"));
    assert!(!allows(&Policy::read("default = 'deny'").unwrap(), "anybody", "lab-a"));
}

#[test]
fn names_match_exactly_and_nothing_like_them_does() {
    let policy = Policy::read("[[rules]]\nverdict = 'allow'\nusers = ['alice']\n").unwrap();
    assert!(allows(&policy, "alice", "lab-b"));
    for other in ["alice2", "Alice", "ALICE", "alic", "alice.", "alice@lab-b", "a-lice", "al1ce"] {
        assert!(!allows(&policy, other, "lab-b"), "{other}");
    }
    // Cyrillic a, full-width a, a letter with an accent in one or two characters, a zero-width joiner.
    for lookalike in ["\u{430}lice", "\u{ff41}lice", "\u{e1}lice", "a\u{301}lice", "al\u{200d}ice"] {
        assert!(lookalike.parse::<Name>().is_err(), "{lookalike}");
        let text = format!("[[rules]]\nverdict = 'allow'\nusers = ['{lookalike}']\n");
        assert!(matches!(Policy::read(&text), Err(PolicyError::Line { line: 3, .. })), "{lookalike}");
    }
}

#[test]
fn first_rule_that_speaks_of_a_job_decides_and_is_named_by_its_line() {
    let text = "# whom we know\n\n[[rules]]\nverdict = 'deny'\nusers = ['mallory']\n\n\
                [[rules]]\nverdict = 'allow'\norganisations = ['lab-b']\n";
    let policy = Policy::read(text).unwrap();
    assert_eq!(verdict(&policy, "mallory", "lab-b"), Verdict::Rule { line: 3, allows: false });
    assert_eq!(verdict(&policy, "bob", "lab-b"), Verdict::Rule { line: 7, allows: true });
    assert_eq!(verdict(&policy, "bob", "lab-c"), Verdict::Default { allows: false });
    let denial = verdict(&policy, "mallory", "lab-a").answer().unwrap_err();
    assert_eq!(denial.to_string(), "the rule in line 3 of its policy.toml denies it");
}

#[test]
fn rule_allows_up_to_its_limits_and_says_nothing_beyond() {
    let text = "[[rules]]\nverdict = 'allow'\norganisations = ['lab-b']\ncores = 2\nmemory = '1GiB'\ntime = '1h'\njobs = 2\n";
    let policy = Policy::read(text).unwrap();
    assert!(policy.counts());
    let hour = Span::from_hours(1);
    let two = Resources::cores(2).with_memory(Size::from_gib(1));
    let allowed = |resources: &Resources, limit, beside| {
        judged(&policy, "bob", "lab-b", resources, limit, beside).answer().is_ok()
    };
    assert!(allowed(&two, hour, 1));
    assert!(!allowed(&Resources::cores(3), hour, 1));
    assert!(!allowed(&two.clone().with_memory(Size::from_gib(2)), hour, 1));
    assert!(!allowed(&two, hour + Span::from_secs(1), 1));
    assert!(!allowed(&two, hour, 2), "it would be the third");
}

#[test]
fn those_without_an_organisation_are_named_by_a_dash() {
    let policy = Policy::read("[[rules]]\nverdict = 'deny'\norganisations = ['-']\n").unwrap();
    let user = name("alice");
    let case = |organisation| Case {
        user: &user,
        key: None,
        organisation,
        resources: &Resources::NONE,
        start: Time::ZERO,
        limit: Span::from_secs(1),
        beside: 0,
        own: &[None],
    };
    assert_eq!(policy.judge(&case(None)), Verdict::Rule { line: 1, allows: false });
    assert!(Policy::default().judge(&case(None)).answer().is_ok(), "its own people have none either");
}

#[test]
fn rules_that_contradict_or_never_decide_are_refused_with_both_lines() {
    let rule = |verdict: &str, who: &str| format!("[[rules]]\nverdict = '{verdict}'\n{who}\n");
    let error = |text: String| Policy::read(&text).unwrap_err().to_string();
    let contradicts = error(rule("deny", "users = ['alice']") + &rule("allow", "users = ['alice']"));
    assert_eq!(contradicts, "line 4: this rule never decides: the one in line 1 contradicts it");
    let same = error(rule("allow", "users = ['a', 'b']") + &rule("allow", "users = ['b']\ncores = 2"));
    assert_eq!(same, "line 4: this rule never decides: the one in line 1 says the same before it");
    let all = error(rule("deny", "") + &rule("allow", "organisations = ['lab-b']"));
    assert!(all.contains("line 1 contradicts"), "{all}");
    // What an earlier rule allows in part only leaves something to a later one.
    let sound = rule("allow", "users = ['a']\ncores = 2") + &rule("deny", "users = ['a']");
    assert!(Policy::read(&sound).is_ok());
}

#[test]
fn file_that_makes_no_sense_is_refused_with_its_line() {
    for (text, line, told) in [
        ("defualt = 'own'", 1, "unknown field `defualt`; did you mean `default`?"),
        ("\nzone = 'CET'", 2, "`zone` is `CET`"),
        ("[[rules]]\nverdict = 'maybe'", 2, "maybe"),
        ("[[rules]]\nusers = ['a']", 1, "verdict"),
        ("[[rules]]\nverdict = 'deny'\ncores = 2", 1, "`cores` bounds"),
        ("[[rules]]\nverdict = 'allow'\nusers = []", 1, "`users` is empty"),
        ("[[rules]]\nverdict = 'allow'\nusers = ['a', 'a']", 1, "twice"),
        ("[[rules]]\nverdict = 'allow'\njobs = 0", 1, "nothing at all"),
        ("[[rules]]\nverdict = 'allow'\nkeys = ['abc']", 1, "`keys`"),
        ("[[rules]]\nverdict = 'allow'\nhours = ['teatime']", 1, "teatime"),
        ("[[rules]]\nverdict = 'allow'\n\nusers = ['a b']", 4, "a name consists of"),
    ] {
        let error = Policy::read(text).unwrap_err().to_string();
        assert!(error.starts_with(&format!("line {line}: ")) && error.contains(told), "{text}: {error}");
    }
}
