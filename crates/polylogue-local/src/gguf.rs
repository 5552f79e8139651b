//! GGUF files: metadata and tensors, checked before anything of them is used.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use candle_core::Device;
use candle_core::quantized::gguf_file::{Content, TensorInfo, Value};
use candle_core::quantized::{GgmlDType, QTensor};

use crate::error::{Defect, LoadError};

/// The beginning of every GGUF file.
const MAGIC: &[u8] = b"GGUF";

/// The header of a GGUF file: its metadata, and where its tensors are.
pub(crate) struct GgufFile {
    path: PathBuf,
    length: u64,
    content: Content,
}

impl GgufFile {
    /// Reads the header of the file at `path`.
    pub(crate) fn open(path: &Path) -> Result<Self, LoadError> {
        let unreadable = |error: std::io::Error| LoadError::Unreadable {
            path: path.to_owned(),
            reason: error.to_string(),
        };
        // Before it is opened: opening a pipe would wait for its writer.
        let about = std::fs::metadata(path).map_err(unreadable)?;
        if !about.is_file() {
            return Err(LoadError::Unreadable { path: path.to_owned(), reason: "it is not a file".into() });
        }
        let mut file = BufReader::new(File::open(path).map_err(unreadable)?);
        // A file that ends before its magic number may be a download that was cut off.
        let beginning = file.fill_buf().map_err(unreadable)?;
        if beginning.len() >= MAGIC.len() && !beginning.starts_with(MAGIC) {
            return Err(LoadError::Foreign { path: path.to_owned() });
        }
        let content = Content::read(&mut file).map_err(|error| Defect::from(error).at(path))?;
        Ok(Self { path: path.to_owned(), length: about.len(), content })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A number of the metadata.
    pub(crate) fn number(&self, key: &str) -> Option<u64> {
        self.content.metadata.get(key).and_then(unsigned)
    }

    /// A number of the metadata that must be there, from 1 to `most`.
    pub(crate) fn size(&self, key: &str, most: u64) -> Result<usize, Defect> {
        let number = self.number(key).ok_or_else(|| Defect::broken(format!("`{key}` is missing")))?;
        match usize::try_from(number) {
            Ok(size) if size > 0 && number <= most => Ok(size),
            _ => Err(Defect::broken(format!("`{key}` is {number}, and must be from 1 to {most}"))),
        }
    }

    /// A fraction of the metadata; only finite numbers count.
    pub(crate) fn fraction(&self, key: &str) -> Option<f64> {
        let value = match self.content.metadata.get(key)? {
            Value::F32(value) => f64::from(*value),
            Value::F64(value) => *value,
            _ => return None,
        };
        value.is_finite().then_some(value)
    }

    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        match self.content.metadata.get(key)? {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn flag(&self, key: &str) -> Option<bool> {
        match self.content.metadata.get(key)? {
            Value::Bool(flag) => Some(*flag),
            _ => None,
        }
    }

    pub(crate) fn list(&self, key: &str) -> Option<&[Value]> {
        match self.content.metadata.get(key)? {
            Value::Array(values) => Some(values),
            _ => None,
        }
    }

    pub(crate) fn has_tensor(&self, name: &str) -> bool {
        self.content.tensor_infos.contains_key(name)
    }

    /// The rows of a tensor with two dimensions.
    pub(crate) fn rows(&self, name: &str) -> Option<usize> {
        match self.content.tensor_infos.get(name)?.shape.dims() {
            [rows, _] => Some(*rows),
            _ => None,
        }
    }

    /// Checks that the tensor `name` has `shape` and is in the file; returns the bytes of memory that it needs.
    pub(crate) fn check(&self, name: &str, shape: &[usize]) -> Result<u64, Defect> {
        let info = self.info(name)?;
        if info.shape.dims() != shape {
            let dims = info.shape.dims();
            return Err(Defect::broken(format!(
                "the tensor `{name}` has the shape {dims:?} instead of {shape:?}"
            )));
        }
        let bytes = size_in_bytes(info)
            .ok_or_else(|| Defect::broken(format!("the tensor `{name}` is no whole number of blocks")))?;
        let end =
            self.content.tensor_data_offset.checked_add(info.offset).and_then(|at| at.checked_add(bytes));
        match end {
            Some(end) if end <= self.length && info.ggml_dtype == GgmlDType::F32 => Ok(bytes),
            // Half precision becomes f32, and the engine keeps quantized weights a second time, in the order that suits
            // the processor.
            Some(end) if end <= self.length => Ok(2 * bytes),
            _ => Err(Defect::broken(format!("the tensor `{name}` ends after the end of the file"))),
        }
    }

    /// Reads the tensor `name`, which was [checked](Self::check).
    pub(crate) fn tensor(&self, file: &mut File, name: &str, device: &Device) -> Result<QTensor, Defect> {
        Ok(self.info(name)?.read(file, self.content.tensor_data_offset, device)?)
    }

    fn info(&self, name: &str) -> Result<&TensorInfo, Defect> {
        let info = self.content.tensor_infos.get(name);
        info.ok_or_else(|| Defect::broken(format!("the tensor `{name}` is missing")))
    }
}

/// A whole number that is not negative, of any type.
pub(crate) fn unsigned(value: &Value) -> Option<u64> {
    match value {
        Value::I8(number) => u64::try_from(*number).ok(),
        Value::I16(number) => u64::try_from(*number).ok(),
        Value::I32(number) => u64::try_from(*number).ok(),
        Value::I64(number) => u64::try_from(*number).ok(),
        Value::Bool(_) => None,
        other => other.to_u64().ok(),
    }
}

/// The size of a tensor, if its rows are whole blocks of a type that weights can have.
fn size_in_bytes(info: &TensorInfo) -> Option<u64> {
    // These types are for intermediate results: there is no product with them.
    if matches!(info.ggml_dtype, GgmlDType::Q8_1 | GgmlDType::Q8K) {
        return None;
    }
    let block = info.ggml_dtype.block_size();
    let row = *info.shape.dims().last()?;
    if row == 0 || !row.is_multiple_of(block) {
        return None;
    }
    let count = info.shape.dims().iter().try_fold(1_usize, |count, size| count.checked_mul(*size))?;
    let bytes = (count / block).checked_mul(info.ggml_dtype.type_size())?;
    (bytes > 0).then(|| u64::try_from(bytes).ok()).flatten()
}
