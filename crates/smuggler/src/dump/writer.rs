//! Writes a dump.

use std::io::{self, BufWriter, Write};

use flate2::write::GzEncoder;

use super::Section;

/// The build that dumps claim to come from: a dump of that build's layout, which official servers of the same line read.
pub const BUILD_VERSION: u32 = 71_028;

/// How a dump is compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DumpCompression {
    /// gzip: every version of the official server reads it.
    #[default]
    Gzip,
    /// Zstandard: smaller and faster; official servers read it from 5.4 on.
    Zstd,
    /// Not at all.
    None,
}

/// Writes sections and their items. They come in the order of calls; what official servers write first is
/// [`Section::BuildVersion`], then [`Section::DatabaseRecord`], then documents.
pub struct DumpWriter<W: Write> {
    out: Encoder<W>,
    /// Whether a section came before, and whether an item came before in the one that is open.
    sections: bool,
    open: Option<bool>,
}

enum Encoder<W: Write> {
    Gzip(BufWriter<GzEncoder<W>>),
    Zstd(BufWriter<zstd::stream::write::Encoder<'static, W>>),
    Plain(BufWriter<W>),
}

/// Bytes gathered before they are compressed.
const BUFFER_SIZE: usize = 128 << 10;
/// Fast rather than small, as dumps are read once.
const GZIP_LEVEL: u32 = 2;
const ZSTD_LEVEL: i32 = 2;

impl<W: Write> Encoder<W> {
    fn as_write(&mut self) -> &mut dyn Write {
        match self {
            Encoder::Gzip(out) => out,
            Encoder::Zstd(out) => out,
            Encoder::Plain(out) => out,
        }
    }
}

impl<W: Write> DumpWriter<W> {
    /// Begins a dump.
    ///
    /// # Errors
    ///
    /// Those of writing; so it is with all calls.
    pub fn new(out: W, compression: DumpCompression) -> io::Result<DumpWriter<W>> {
        let mut out = match compression {
            DumpCompression::Gzip => Encoder::Gzip(BufWriter::with_capacity(
                BUFFER_SIZE,
                GzEncoder::new(out, flate2::Compression::new(GZIP_LEVEL)),
            )),
            DumpCompression::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(out, ZSTD_LEVEL)?;
                encoder.include_checksum(true)?;
                Encoder::Zstd(BufWriter::with_capacity(BUFFER_SIZE, encoder))
            }
            DumpCompression::None => Encoder::Plain(BufWriter::with_capacity(BUFFER_SIZE, out)),
        };
        out.as_write().write_all(b"{")?;
        Ok(DumpWriter { out, sections: false, open: None })
    }

    /// Writes a section that is one JSON value.
    ///
    /// # Errors
    ///
    /// Those of writing.
    pub fn value(&mut self, section: &Section, json: &[u8]) -> io::Result<()> {
        self.name(section)?;
        self.out.as_write().write_all(json)
    }

    /// Begins a section of items, ending the one before.
    ///
    /// # Errors
    ///
    /// Those of writing.
    pub fn begin(&mut self, section: &Section) -> io::Result<()> {
        self.name(section)?;
        self.open = Some(false);
        self.out.as_write().write_all(b"[")
    }

    /// Writes an item of the open section, a whole JSON value.
    ///
    /// # Errors
    ///
    /// Those of writing; `InvalidInput` if no section of items is open.
    pub fn item(&mut self, json: &[u8]) -> io::Result<()> {
        let out = self.out.as_write();
        match self.open.replace(true) {
            Some(true) => out.write_all(b",")?,
            Some(false) => {}
            None => return Err(io::Error::new(io::ErrorKind::InvalidInput, "no section is open")),
        }
        out.write_all(json)
    }

    /// Ends the dump and returns what it was written to.
    ///
    /// # Errors
    ///
    /// Those of writing.
    pub fn finish(mut self) -> io::Result<W> {
        self.close()?;
        self.out.as_write().write_all(b"}")?;
        match self.out {
            Encoder::Gzip(out) => out.into_inner().map_err(io::IntoInnerError::into_error)?.finish(),
            Encoder::Zstd(out) => out.into_inner().map_err(io::IntoInnerError::into_error)?.finish(),
            Encoder::Plain(out) => out.into_inner().map_err(io::IntoInnerError::into_error),
        }
    }

    fn close(&mut self) -> io::Result<()> {
        if self.open.take().is_some() {
            self.out.as_write().write_all(b"]")?;
        }
        Ok(())
    }

    fn name(&mut self, section: &Section) -> io::Result<()> {
        self.close()?;
        let comma: &[u8] = if std::mem::replace(&mut self.sections, true) { b"," } else { b"" };
        let out = self.out.as_write();
        out.write_all(comma)?;
        serde_json::to_writer(&mut *out, section.name())?;
        out.write_all(b":")
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Read};

    use super::*;
    use crate::compression::{Compression, Expansion, ReadCount, decompressed};

    fn write(compression: DumpCompression) -> io::Result<Vec<u8>> {
        let mut dump = DumpWriter::new(Vec::new(), compression)?;
        dump.value(&Section::BuildVersion, b"71028")?;
        dump.begin(&Section::Documents)?;
        dump.item(b"{}")?;
        dump.item(b"{\"a\":1}")?;
        dump.begin(&Section::Identities)?;
        dump.begin(&Section::Other("X\"".into()))?;
        dump.item(b"1")?;
        dump.finish()
    }

    #[test]
    fn dumps_are_whole_json() {
        let kinds = [
            (DumpCompression::None, Compression::None),
            (DumpCompression::Gzip, Compression::Gzip),
            (DumpCompression::Zstd, Compression::Zstd),
        ];
        for (compression, expected) in kinds {
            let dump = write(compression).unwrap();
            assert_eq!(Compression::of(&dump), expected);
            let mut text = String::new();
            let count = ReadCount::default();
            decompressed(Cursor::new(dump), Expansion::default(), &count)
                .unwrap()
                .read_to_string(&mut text)
                .unwrap();
            assert_eq!(text, r#"{"BuildVersion":71028,"Docs":[{},{"a":1}],"Identities":[],"X\"":[1]}"#);
        }
    }

    #[test]
    fn items_need_a_section() {
        let mut dump = DumpWriter::new(Vec::new(), DumpCompression::None).unwrap();
        assert!(dump.item(b"{}").is_err());
    }
}
