//! A column of texts: one buffer instead of a string for every node, because a tree of 100,000 nodes has two of them.

use serde::{Serialize, Serializer};

/// Texts one behind the other. As JSON, a list of strings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TextColumn {
    text: String,
    /// Where each text ends.
    ends: Vec<usize>,
}

impl TextColumn {
    /// A column with room for so many texts and bytes.
    pub fn with_capacity(texts: usize, bytes: usize) -> Self {
        Self { text: String::with_capacity(bytes), ends: Vec::with_capacity(texts) }
    }

    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.ends.push(self.text.len());
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub fn get(&self, index: usize) -> Option<&str> {
        let start = match index.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        self.text.get(start..*self.ends.get(index)?)
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).filter_map(|index| self.get(index))
    }
}

impl<'t> FromIterator<&'t str> for TextColumn {
    fn from_iter<I: IntoIterator<Item = &'t str>>(texts: I) -> Self {
        let mut column = Self::default();
        texts.into_iter().for_each(|text| column.push(text));
        column
    }
}

impl Serialize for TextColumn {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_a_list_of_its_texts() {
        let texts = ["", "root", "日本", ""];
        let column: TextColumn = texts.into_iter().collect();
        assert_eq!((column.len(), column.iter().collect::<Vec<_>>()), (4, texts.to_vec()));
        assert_eq!((column.get(2), column.get(4)), (Some("日本"), None));
        assert_eq!(serde_json::to_string(&column).unwrap(), serde_json::to_string(&texts).unwrap());
        assert!(TextColumn::default().is_empty() && TextColumn::default().get(0).is_none());
    }
}
