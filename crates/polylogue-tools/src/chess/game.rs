//! A game of chess: moves and board.

use std::fmt;
use std::fmt::Write as _;

use cozy_chess::util::{display_san_move, display_uci_move, parse_san_move, parse_uci_move};
use cozy_chess::{Board, Color, File, GameStatus, Move, Piece, Rank, Square};

/// How a game ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// This side has won by checkmate.
    Mate(Color),
    /// The player to move has no legal move and is not in check.
    Stalemate,
    /// Fifty moves of each side without a capture or a pawn.
    FiftyMoves,
    /// The same position for the third time.
    Repetition,
}

impl End {
    /// The result in standard notation.
    pub(super) const fn score(self) -> &'static str {
        match self {
            Self::Mate(Color::White) => "1-0",
            Self::Mate(Color::Black) => "0-1",
            _ => "1/2-1/2",
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mate(side) => write!(f, "checkmate, {} wins", word(*side)),
            Self::Stalemate => f.write_str("stalemate, a draw"),
            Self::FiftyMoves => f.write_str("a draw by the rule of fifty moves"),
            Self::Repetition => f.write_str("a draw, the same position for the third time"),
        }
    }
}

/// The state of a game.
pub(super) struct Game {
    board: Board,
    /// The position after every move.
    seen: Vec<u64>,
}

impl Game {
    /// The game with these moves. Illegal moves are skipped.
    pub(super) fn of<'m>(moves: impl Iterator<Item = &'m str>) -> Self {
        let board = Board::default();
        let mut game = Self { seen: vec![board.hash()], board };
        for text in moves {
            if let Ok(next) = game.read(text) {
                game.make(next);
            }
        }
        game
    }

    /// The side to move.
    pub(super) fn side(&self) -> &'static str {
        word(self.board.side_to_move())
    }

    /// How it ended, if it is over.
    pub(super) fn result(&self) -> Option<End> {
        match self.board.status() {
            GameStatus::Won => Some(End::Mate(!self.board.side_to_move())),
            GameStatus::Drawn if self.board.halfmove_clock() >= 100 => Some(End::FiftyMoves),
            GameStatus::Drawn => Some(End::Stalemate),
            GameStatus::Ongoing => {
                let now = self.board.hash();
                (self.seen.iter().filter(|seen| **seen == now).count() >= 3).then_some(End::Repetition)
            }
        }
    }

    /// Makes a move, and describes the result.
    pub(super) fn play(&mut self, text: &str) -> Result<String, String> {
        let next = self.read(text)?;
        let (side, number) = (self.side(), self.board.fullmove_number());
        let (name, squares) = (
            display_san_move(&self.board, next).to_string(),
            display_uci_move(&self.board, next).to_string(),
        );
        self.make(next);
        let then = match self.result() {
            Some(end) => format!("The game is over: {end}."),
            None if self.board.checkers().is_empty() => format!("{} moves next.", capital(self.side())),
            None => format!("{} is in check.", capital(self.side())),
        };
        Ok(format!("{number}. {side} plays {name} ({squares}). {then}\n{}", self.drawn()))
    }

    /// The board and the legal moves.
    pub(super) fn shown(&self) -> String {
        let next = match self.result() {
            Some(end) => format!("The game is over: {end}."),
            None => format!("{} moves. Legal moves: {}", capital(self.side()), self.legal().join(" ")),
        };
        format!("{}\n{next}", self.drawn())
    }

    fn make(&mut self, next: Move) {
        if self.board.try_play(next).is_ok() {
            self.seen.push(self.board.hash());
        }
    }

    /// Parses a move.
    fn read(&self, text: &str) -> Result<Move, String> {
        let by_name = || parse_san_move(&self.board, &text.replace('0', "O"));
        let found = parse_uci_move(&self.board, &text.to_lowercase()).or_else(|_| by_name());
        let legal = |next: &Move| self.board.is_legal(*next);
        found.ok().filter(legal).ok_or_else(|| {
            let moves = self.legal().join(" ");
            format!("`{text}` is not a legal move of {} here; these are: {moves}", self.side())
        })
    }

    fn legal(&self) -> Vec<String> {
        let mut moves = Vec::new();
        self.board.generate_moves(|of_piece| {
            moves.extend(of_piece.into_iter().map(|next| display_san_move(&self.board, next).to_string()));
            false
        });
        moves.sort();
        moves
    }

    /// The board from White's side; capital letters are White.
    fn drawn(&self) -> String {
        let mut text = String::new();
        for rank in Rank::ALL.into_iter().rev() {
            let _ = write!(text, "{rank}");
            for file in File::ALL {
                let square = Square::new(file, rank);
                let _ = write!(text, " {}", self.letter(square));
            }
            text.push('\n');
        }
        text.push_str("  a b c d e f g h");
        text
    }

    fn letter(&self, square: Square) -> char {
        let letter = match self.board.piece_on(square) {
            None => return '.',
            Some(Piece::Pawn) => 'p',
            Some(Piece::Knight) => 'n',
            Some(Piece::Bishop) => 'b',
            Some(Piece::Rook) => 'r',
            Some(Piece::Queen) => 'q',
            Some(Piece::King) => 'k',
        };
        let is_white = self.board.color_on(square) == Some(Color::White);
        if is_white { letter.to_ascii_uppercase() } else { letter }
    }
}

const fn word(side: Color) -> &'static str {
    match side {
        Color::White => "white",
        Color::Black => "black",
    }
}

fn capital(word: &str) -> &'static str {
    if word == "white" { "White" } else { "Black" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(moves: &[&str]) -> Game {
        Game::of(moves.iter().copied())
    }

    #[test]
    fn moves_are_read_as_people_and_models_write_them() {
        let mut game = after(&[]);
        for text in ["e2e4", "e5", "Nf3", "Nc6", "Bb5", "a6", "Bxc6", "dxc6", "0-0"] {
            game.play(text).unwrap();
        }
        let board = "8 r . b q k b n r\n7 . p p . . p p p\n6 p . p . . . . .\n5 . . . . p . . .\n4 . . . . P . . .\n3 . . . . . N . .\n2 P P P P . P P P\n1 R N B Q . R K .\n  a b c d e f g h";
        assert_eq!(game.drawn(), board);
        assert_eq!(game.side(), "black");
    }

    #[test]
    fn an_illegal_move_is_refused_with_the_legal_moves() {
        let error = after(&["e4", "e5"]).play("Ke3").unwrap_err();
        assert!(error.starts_with("`Ke3` is not a legal move of white here; these are: Ba6 "), "{error}");
        for text in ["", "e9e4", "castle", "e7e5", "e2e5", "🦀", "Qh5Qh5", "e2e4e5"] {
            assert!(after(&[]).play(text).is_err(), "{text}");
        }
    }

    #[test]
    fn games_end_by_the_rules() {
        let mate = after(&["f3", "e5", "g4", "Qh4"]);
        assert_eq!((mate.result(), End::Mate(Color::Black).score()), (Some(End::Mate(Color::Black)), "0-1"));
        let there_and_back = ["Nf3", "Nf6", "Ng1", "Ng8"];
        let twice: Vec<&str> = there_and_back.iter().copied().cycle().take(8).collect();
        assert_eq!(after(&twice).result(), Some(End::Repetition));
        assert_eq!(after(&there_and_back).result(), None);
        let stalemate = "e3 a5 Qh5 Ra6 Qxa5 h5 h4 Rah6 Qxc7 f6 Qxd7 Kf7 Qxb7 Qd3 Qxb8 Qh7 Qxc8 Kg6 Qe6";
        let moves: Vec<&str> = stalemate.split(' ').collect();
        assert_eq!(after(&moves).result(), Some(End::Stalemate));
    }
}
