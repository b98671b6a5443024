//! The words of a text, as tantivy takes them.

use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

use crate::words::{Kind, Word, Words};

/// Cuts texts into words.
#[derive(Clone, Default)]
pub(crate) struct WordTokenizer;

/// The name by which the schema knows it.
pub(crate) const WORDS: &str = "words";

/// See [`WordTokenizer`].
pub(crate) struct WordStream<'t> {
    words: Words<'t>,
    word: Word,
    token: Token,
}

impl Tokenizer for WordTokenizer {
    type TokenStream<'t> = WordStream<'t>;

    fn token_stream<'t>(&'t mut self, text: &'t str) -> WordStream<'t> {
        let word = Word { text: String::new(), place: 0, from: 0, to: 0, kind: Kind::Part };
        WordStream { words: Words::of(text), word, token: Token::default() }
    }
}

impl TokenStream for WordStream<'_> {
    fn advance(&mut self) -> bool {
        if !self.words.next_into(&mut self.word) {
            return false;
        }
        std::mem::swap(&mut self.token.text, &mut self.word.text);
        self.token.position = self.word.place;
        (self.token.offset_from, self.token.offset_to) = (self.word.from, self.word.to);
        self.token.position_length = 1;
        true
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}
