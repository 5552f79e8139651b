//! Attributes and wrappers of derived types: notations of other types, scopes of names, flattened kinds, positions.

use polylogue_config::diagnostic::Report;
use polylogue_config::source::Source;
use polylogue_config::types::{Text, Variables};
use polylogue_config::{As, At, Config, Cx, Illegal, NameKind, NewName, Ref, Vars, yaml};
use serde_json::json;

/// Reads `text` as a `T`; then the messages about it.
fn read<T: Config>(text: &str) -> (T, Vec<String>) {
    let source = Source::new("x.yaml", text);
    let mut report = Report::new(&source);
    let mut vars = Vars::default();
    let node = yaml::parse(&mut report).unwrap();
    let mut cx = Cx::new("a file", &mut report, &mut vars);
    let value = T::read(&node, &mut cx);
    cx.resolve();
    (value, report.finish().iter().map(|one| one.message.clone()).collect())
}

/// A type of a library, which knows nothing of files.
#[derive(Debug, Clone, PartialEq)]
struct Point {
    x: u32,
    side: Side,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Side {
    Left,
    Right,
}

/// A point.
#[derive(Config)]
#[config(name = "Point", for = Point)]
struct PointKeys {
    /// Its distance.
    #[key(default = 1, range = 0..=9)]
    x: u32,
    /// Its side.
    #[key(as = SideKey, default = Side::Left)]
    side: Side,
}

/// A side.
#[derive(Config)]
#[config(name = "Side", for = Side)]
enum SideKey {
    /// The left one.
    Left,
    /// The right one.
    Right,
}

/// A line.
#[derive(Config)]
struct Line {
    /// Its points.
    #[key(as = Vec<PointKeys>)]
    points: Vec<Point>,
}

#[test]
fn a_notation_reads_and_writes_the_type_that_it_is_for() {
    let (line, found) = read::<Line>("points: [{}, {x: 3, side: right}]");
    assert_eq!(found, [""; 0]);
    assert_eq!(line.points, [Point { x: 1, side: Side::Left }, Point { x: 3, side: Side::Right }]);
    assert_eq!(line.write(), json!({"points": [{}, {"x": 3, "side": "right"}]}));
    let (line, found) = read::<Line>("points: [{x: 10, side: rigth}]");
    assert_eq!(found, ["`x` must be at most 9", "`side` cannot be `rigth`"]);
    assert_eq!(line.points.len(), 1);
    let point: Point = PointKeys::absent().into_value();
    assert_eq!(point, Point { x: 1, side: Side::Left });
}

struct Player;

impl NameKind for Player {
    const KIND: &'static str = "player";
    const NOUN: &'static str = "a player";
    type Name = String;
    const SCOPED: bool = true;
    const TEXT: Text = Text { format: "", pattern: "", examples: &[], variables: Variables::None };
    fn parse(name: &str) -> Result<String, Illegal> {
        Ok(name.to_owned())
    }
    fn hole() -> String {
        String::new()
    }
}

/// A game.
#[derive(Config)]
#[config(scope)]
struct Game {
    /// Its players.
    players: Vec<NewName<Player>>,
    /// Who begins.
    #[key(none = "the first player")]
    first: Option<Ref<Player>>,
}

/// Several games.
#[derive(Config)]
struct Games {
    /// The games.
    games: Vec<Game>,
}

#[test]
fn names_of_a_scope_are_known_within_it_alone() {
    let (games, found) = read::<Games>("games: [{players: [A, B], first: B}, {players: [A], first: A}]");
    assert_eq!(found, [""; 0], "two scopes can define the same name");
    assert_eq!(games.games.len(), 2);
    assert_eq!(games.games[0].players.len(), 2);
    let (_, found) = read::<Games>("games: [{players: [A, B]}, {players: [C, C], first: B}]");
    assert_eq!(found, ["a player `C` is already defined in line 1", "unknown player `B`"]);
    let (games, _) = read::<Games>("games: [{players: [A], first: A}]");
    assert_eq!(games.games[0].first.as_ref().map(|first| first.0.as_str()), Some("A"));
}

/// A pet.
#[derive(Config, Debug, PartialEq)]
struct Pet {
    /// What it is called.
    name: String,
    #[key(flatten)]
    kind: Kind,
}

/// The kinds of pets.
#[derive(Config, Debug, PartialEq)]
enum Kind {
    /// A bird.
    #[when(bird = true, noun = "a bird")]
    Bird(Bird),
    /// Any other pet.
    #[when(noun = "a pet that is not a bird", hint = "only birds have wings")]
    Other(Other),
}

/// A bird.
#[derive(Config, Debug, PartialEq)]
struct Bird {
    /// Whether it is a bird.
    #[key(default = false)]
    bird: bool,
    /// The span of its wings.
    wings: u8,
}

/// Any other pet.
#[derive(Config, Debug, PartialEq)]
struct Other {
    /// How many legs it has.
    #[key(default = 4)]
    legs: u8,
}

#[test]
fn keys_of_a_flattened_kind_stand_next_to_the_others() {
    let (bird, found) = read::<Pet>("{name: Tweety, bird: true, wings: 9}");
    assert_eq!(found, [""; 0]);
    assert_eq!(bird.kind, Kind::Bird(Bird { bird: true, wings: 9 }));
    assert_eq!(bird.write(), json!({"name": "Tweety", "bird": true, "wings": 9}));
    let (cat, found) = read::<Pet>("{name: Tom}");
    assert_eq!((cat.kind, found), (Kind::Other(Other { legs: 4 }), vec![]));
    assert_eq!(read::<Pet>("{name: Tom, wings: 1}").1, ["a pet that is not a bird has no `wings`"]);
    assert_eq!(read::<Pet>("{name: Tweety, bird: true}").1, ["a file needs the key `wings`"]);
    // What decides the kind is of no use where it is no switch, and the default kind does not have it.
    assert_eq!(read::<Pet>("{name: Tom, bird: 7}").1, ["`bird` must be `true` or `false`, not a number"]);
    assert_eq!(read::<Pet>("{name: Tom, bird: false}").1, [""; 0]);
    assert_eq!(
        read::<Pet>("{bird: true, wings: 1, legz: 2}").1,
        ["a file needs the key `name`", "unknown key `legz`"]
    );
}

#[test]
fn a_key_that_an_unknown_one_stands_for_is_not_missing_too() {
    assert_eq!(read::<Pet>("{nam: Tom}").1, ["unknown key `nam`"], "its hint names it");
    assert_eq!(read::<Pet>("{whiskers: 4}").1, ["unknown key `whiskers`", "a file needs the key `name`"]);
}

/// Values with their positions.
#[derive(Config)]
struct Placed {
    /// A required number.
    #[key(range = 0..=9)]
    first: At<u8>,
    /// A number with a default.
    #[key(default = 5)]
    second: At<u8>,
    /// A list.
    items: At<Vec<At<u8>>>,
}

#[test]
fn a_value_has_its_position_and_its_validity() {
    let text = "first: 7\nitems: [1, x]\n";
    let (placed, found) = read::<Placed>(text);
    assert_eq!(found, ["an item of `items` must be a whole number, not a text"]);
    assert_eq!((&text[placed.first.span.clone()], &text[placed.first.key().clone()]), ("7", "first"));
    assert_eq!((*placed.first, placed.first.sound()), (7, Some(&7)));
    assert_eq!((*placed.second, placed.second.given(), placed.second.ok), (5, None, true));
    let items: Vec<_> = placed.items.iter().map(|item| (&text[item.span.clone()], item.sound())).collect();
    assert_eq!(items, [("1", Some(&1)), ("x", None)]);
    assert!(placed.items.sound().is_none(), "a list with a wrong item is not sound");
    assert_eq!(placed.items[0].given(), None, "an item has no key");
    let (placed, found) = read::<Placed>("second: 6\nfirst: 10");
    assert_eq!((placed.first.ok, *placed.second), (false, 6));
    assert_eq!(found, ["`first` must be at most 9"]);
    let (placed, found) = read::<Placed>("second: 5");
    assert_eq!((placed.first.ok, placed.first.given()), (false, None));
    assert_eq!(found, ["a file needs the key `first`"]);
    assert_eq!(placed.write(), json!({"first": 0}), "a default is not written, whatever its position");
}
