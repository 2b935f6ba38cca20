//! Labels for users, groups and partitions: numbers in one format, words in another.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// A user, group or partition: its number in the trace, or the place of its name in [`Names`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(u32);

/// The words behind labels, in order of first appearance; empty where the trace has plain numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    words: Vec<String>,
    places: BTreeMap<String, u32>,
}

impl Label {
    /// The trace does not say.
    pub const UNKNOWN: Label = Label(u32::MAX);

    /// The label with this number.
    pub const fn new(number: u32) -> Label {
        Label(number)
    }

    /// Its number, unless it is unknown.
    pub const fn number(self) -> Option<u32> {
        match self {
            Label::UNKNOWN => None,
            Label(number) => Some(number),
        }
    }
}

impl Names {
    /// The label of a word, made on first sight. Words count from 1, as the numbers of SWF do.
    pub(crate) fn label(&mut self, word: &[u8]) -> Label {
        let word = String::from_utf8_lossy(word);
        if let Some(&place) = self.places.get(word.as_ref()) {
            return Label(place);
        }
        let place = u32::try_from(self.words.len() + 1).expect("fewer than 2^32 names");
        self.words.push(word.clone().into_owned());
        self.places.insert(word.into_owned(), place);
        Label(place)
    }

    /// The label that a user of the program means by a word or a number.
    pub fn find(&self, text: &str) -> Option<Label> {
        match self.places.get(text) {
            Some(&place) => Some(Label(place)),
            None if self.words.is_empty() => text.parse().ok().map(Label),
            None => None,
        }
    }

    /// What a label stands for: its word, else its number; -1 if unknown.
    pub fn text(&self, label: Label) -> Cow<'_, str> {
        let Some(number) = label.number() else { return Cow::Borrowed("-1") };
        match (number as usize).checked_sub(1).and_then(|index| self.words.get(index)) {
            Some(word) => Cow::Borrowed(word),
            None => Cow::Owned(number.to_string()),
        }
    }
}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number() {
            Some(number) => write!(f, "#{number}"),
            None => f.write_str("#?"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_get_labels_in_order_of_appearance() {
        let mut names = Names::default();
        assert_eq!(names.label(b"user7"), Label(1));
        assert_eq!(names.label(b"user3"), Label(2));
        assert_eq!(names.label(b"user7"), Label(1));
        assert_eq!(names.find("user3"), Some(Label(2)));
        assert_eq!(names.find("2"), None, "a number is no name where there are words");
        assert_eq!(names.text(Label(2)), "user3");
        assert_eq!(names.text(Label::UNKNOWN), "-1");
    }

    #[test]
    fn without_words_a_label_is_its_number() {
        assert_eq!(Names::default().find("12"), Some(Label(12)));
        assert_eq!(Names::default().find("carol"), None);
        assert_eq!(Names::default().text(Label(12)), "12");
    }
}
