//! What a person meets in the first hour with the program.

use crate::home::{Home, shipped};

/// The reply of a selector is shown with the selection, and by itself only if it says more than a name.
#[test]
fn verbose_output_shows_each_selection_of_a_speaker_once() {
    let home = Home::new();
    let ran = home.run(&["run", &shipped("arithmetic-group"), "--offline", "-v"]).ok();
    let count = |text: &str| ran.out.lines().filter(|line| line.contains(text)).count();
    assert_eq!(count("picks Adder among"), 1, "{}", ran.out);
    assert_eq!(ran.out.lines().filter(|line| *line == "Adder").count(), 0, "{}", ran.out);
    assert_eq!(count("The next step doubles it: Multiplier."), 1, "{}", ran.out);
    assert_eq!(count("\"speaker\""), 0, "{}", ran.out);
}
