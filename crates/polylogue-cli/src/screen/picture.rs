//! Pictures: where their files are, and how a terminal that can draws them.
//!
//! A drawing goes to the terminal unchanged, and past everything that keeps others' words from driving it. So it is made
//! here of numbers and of base 64, and of nothing else.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use polylogue_core::Media;

use super::style::Style;
use super::text::Line;

/// How many pixels wide a column is taken to be; terminals do not agree, and few say.
const COLUMN: u32 = 10;
/// How much of a picture goes into one command, as kitty has it.
const CHUNK: usize = 4096;

/// How a terminal draws pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ImageProtocol {
    /// By kitty's commands, which others know as well.
    Kitty,
    /// By iTerm2's.
    Iterm,
}

impl ImageProtocol {
    /// How the terminal of this process draws, if it says that it can.
    pub(crate) fn of_terminal() -> Option<Self> {
        Self::choose(&|name| std::env::var(name).ok())
    }

    fn choose(env: &dyn Fn(&str) -> Option<String>) -> Option<Self> {
        let get = |name: &str| env(name).unwrap_or_default();
        let (term, program) = (get("TERM"), get("TERM_PROGRAM"));
        // What is in between hands no pictures on, and its terminal may be another one by now.
        if !get("TMUX").is_empty() || ["screen", "tmux"].iter().any(|between| term.starts_with(between)) {
            return None;
        }
        let is_kitty = term.contains("kitty") || term.contains("ghostty") || program == "ghostty";
        let is_iterm =
            ["iTerm.app", "WezTerm", "mintty"].contains(&&*program) || get("LC_TERMINAL") == "iTerm2";
        match (is_kitty, is_iterm) {
            (true, _) => Some(Self::Kitty),
            (false, true) => Some(Self::Iterm),
            (false, false) => None,
        }
    }
}

/// Where the pictures of a conversation are, and how they are shown.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pictures {
    dir: Option<PathBuf>,
    draws: Option<ImageProtocol>,
}

impl Pictures {
    /// Those in the work directory `dir`, which are drawn if the terminal `draws`.
    pub(crate) const fn new(dir: Option<PathBuf>, draws: Option<ImageProtocol>) -> Self {
        Self { dir, draws }
    }

    /// The file that holds it, if there is one.
    pub(super) fn file(&self, media: &Media) -> Option<PathBuf> {
        let path = self.dir.as_deref()?.join(media.file_name()?);
        is_file(&path).then_some(path)
    }

    /// It as a line, `[picture: PATH 640x480]`, and drawn below.
    pub(super) fn lines(&self, media: &Media, columns: Option<usize>) -> Vec<Line> {
        let named = Line::new(&self.named(media), Style::DIM);
        std::iter::once(named).chain(columns.and_then(|columns| self.drawn(media, columns))).collect()
    }

    fn named(&self, media: &Media) -> String {
        let Some((wide, high)) = media.pixels() else {
            return format!("[{media}]");
        };
        match self.file(media) {
            Some(path) => format!("[picture: {} {wide}x{high}]", path.display()),
            None => format!("[picture: {} {wide}x{high}]", media.media_type),
        }
    }

    fn drawn(&self, media: &Media, columns: usize) -> Option<Line> {
        let data = media.url.split_once(";base64,")?.1;
        if !data.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte)) {
            return None;
        }
        let (wide, _) = media.pixels()?;
        let most = u32::try_from(columns).unwrap_or(u32::MAX).max(1);
        let columns = wide.div_ceil(COLUMN).clamp(1, most);
        match self.draws? {
            ImageProtocol::Kitty if media.media_type == "image/png" => {
                Some(Line::drawing(of_kitty(data, columns)))
            }
            ImageProtocol::Kitty => None,
            ImageProtocol::Iterm => {
                let head = format!("\x1b]1337;File=inline=1;width={columns};preserveAspectRatio=1");
                Some(Line::drawing(format!("{head}:{data}\x07").into()))
            }
        }
    }
}

/// The commands that draw a PNG in so many columns; no answer is wanted to them.
fn of_kitty(data: &str, columns: u32) -> Arc<str> {
    let mut commands = String::with_capacity(data.len() + data.len() / CHUNK * 16 + 64);
    let mut rest = data;
    let mut head = format!("a=T,f=100,q=2,c={columns},");
    loop {
        let (chunk, after) = rest.split_at(rest.len().min(CHUNK));
        let more = u8::from(!after.is_empty());
        commands.push_str(&format!("\x1b_G{head}m={more};{chunk}\x1b\\"));
        if after.is_empty() {
            return commands.into();
        }
        head.clear();
        rest = after;
    }
}

/// A link that a program left in its place is none.
fn is_file(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|about| about.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIXEL: &str =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

    fn media(kind: &str, data: &str) -> Media {
        Media { media_type: kind.into(), url: format!("data:{kind};base64,{data}").into() }
    }

    fn written(pictures: &Pictures, media: &Media) -> String {
        let mut out = String::new();
        pictures.lines(media, Some(80)).iter().for_each(|line| line.write(true, &mut out));
        out
    }

    #[test]
    fn the_image_protocol_is_chosen_by_the_environment() {
        let choose = |vars: &[(&str, &str)]| {
            ImageProtocol::choose(&|name| Some(vars.iter().find(|(var, _)| *var == name)?.1.to_owned()))
        };
        assert_eq!(choose(&[("TERM", "xterm-kitty")]), Some(ImageProtocol::Kitty));
        assert_eq!(
            choose(&[("TERM", "xterm-ghostty"), ("TERM_PROGRAM", "ghostty")]),
            Some(ImageProtocol::Kitty)
        );
        assert_eq!(
            choose(&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "iTerm.app")]),
            Some(ImageProtocol::Iterm)
        );
        assert_eq!(choose(&[("TERM_PROGRAM", "WezTerm")]), Some(ImageProtocol::Iterm));
        assert_eq!(choose(&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "Apple_Terminal")]), None);
        assert_eq!(choose(&[("TERM", "xterm-kitty"), ("TMUX", "/tmp/tmux-0")]), None);
        assert_eq!(choose(&[("TERM", "tmux-256color"), ("LC_TERMINAL", "iTerm2")]), None);
        assert_eq!(choose(&[]), None);
    }

    #[test]
    fn a_picture_is_named_by_its_file_and_size() {
        let dir = tempfile::tempdir().unwrap();
        let picture = media("image/png", PIXEL);
        let pictures = Pictures::new(Some(dir.path().to_owned()), None);
        let plain = |pictures: &Pictures| pictures.lines(&picture, None)[0].text();
        assert_eq!(plain(&pictures), "[picture: image/png 1x1]");
        let path = dir.path().join(picture.file_name().unwrap());
        std::fs::write(&path, "x").unwrap();
        assert_eq!(plain(&pictures), format!("[picture: {} 1x1]", path.display()));
        assert_eq!(plain(&Pictures::default()), "[picture: image/png 1x1]");
        let far = Media { media_type: "image/png".into(), url: "https://example.org/a.png".into() };
        assert_eq!(pictures.lines(&far, Some(80))[0].text(), "[image/png: https://example.org/a.png]");
        let document = Media::of_bytes(&[b"%PDF-1.7".as_slice(), &[b'x'; 11_400]].concat()).unwrap();
        assert_eq!(pictures.lines(&document, Some(80))[0].text(), "[document: application/pdf, 12 KB]");
    }

    #[test]
    fn terminals_draw_what_is_a_picture_and_nothing_else() {
        let [kitty, iterm] =
            [ImageProtocol::Kitty, ImageProtocol::Iterm].map(|draws| Pictures::new(None, Some(draws)));
        let picture = media("image/png", PIXEL);
        let commands = format!("\x1b_Ga=T,f=100,q=2,c=1,m=0;{PIXEL}\x1b\\");
        assert!(written(&kitty, &picture).ends_with(&commands));
        let commands = format!("\x1b]1337;File=inline=1;width=1;preserveAspectRatio=1:{PIXEL}\x07");
        assert!(written(&iterm, &picture).ends_with(&commands));
        assert!(!written(&Pictures::default(), &picture).contains(PIXEL));
        // In pieces, of which only the last ends it.
        let large = media("image/png", &format!("{}{}", PIXEL.trim_end_matches('='), "A".repeat(2 * CHUNK)));
        let text = written(&kitty, &large);
        assert_eq!((text.matches("\x1b_G").count(), text.matches("m=1;").count()), (3, 2), "{text}");
        // Nothing of it can be an escape sequence, and kitty knows PNG alone.
        for wrong in [media("image/png", "iVBORw0K\x1b[2J"), media("image/png", "")] {
            assert!(!written(&iterm, &wrong).contains("\x1b]1337"));
        }
        let gif = media("image/gif", "R0lGODlhAgADAAAA");
        assert!(!written(&kitty, &gif).contains("\x1b_G") && written(&iterm, &gif).contains("\x1b]1337"));
    }
}
