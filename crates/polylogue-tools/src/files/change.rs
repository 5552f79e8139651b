//! Writes and edits files.

use polylogue_core::{ToolError, ToolResult};
use serde_json::Value;

use super::arguments::{flag, text};
use super::folder::{Folder, check_size};

/// `write_file`.
pub(super) fn write(folder: &Folder, args: &Value) -> Result<ToolResult, ToolError> {
    let (path, content) = (text(args, "path")?, text(args, "content")?);
    let names = folder.names(path)?;
    let _changing = folder.changing();
    let was_there = folder.write(&names, content.as_bytes())?;
    let done = if was_there { "Replaced" } else { "Wrote" };
    Ok(ToolResult::done(format!("{done} `{}` ({} bytes).", names.join("/"), content.len())))
}

/// `edit_file`.
pub(super) fn edit(folder: &Folder, args: &Value) -> Result<ToolResult, ToolError> {
    let (path, old, new) = (text(args, "path")?, text(args, "old")?, text(args, "new")?);
    let all = flag(args, "all")?;
    let names = folder.names(path)?;
    if old.is_empty() {
        return Err("`old` is empty: `write_file` writes a whole file".into());
    }
    let _changing = folder.changing();
    let content = String::from_utf8(folder.read(&names)?)
        .map_err(|_| ToolError(format!("`{path}` is not UTF-8 text, and is left unchanged")))?;
    let count = content.matches(old).count();
    match count {
        0 => return Err(ToolError(format!("`old` is not in `{path}`: it must be exactly the same"))),
        1 => {}
        _ if all => {}
        _ => {
            return Err(ToolError(format!(
                "`old` occurs {count} times in `{path}`: add more context, or set `all`"
            )));
        }
    }
    // A short text that stands there often may become many times as much: that is known before any of it is made.
    let (gone, added) = (count.checked_mul(old.len()), count.checked_mul(new.len()));
    let bytes = gone.zip(added).and_then(|(gone, added)| (content.len() - gone).checked_add(added));
    check_size(&names.join("/"), bytes.map_or(u64::MAX, |bytes| bytes as u64))?;
    folder.write(&names, content.replace(old, new).as_bytes())?;
    let times = if count == 1 { "once".to_owned() } else { format!("{count} times") };
    Ok(ToolResult::done(format!("Replaced it {times} in `{}`.", names.join("/"))))
}
