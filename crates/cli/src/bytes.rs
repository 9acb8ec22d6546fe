//! Keys, values and sizes for people.

use std::fmt::Write;

/// Bytes that are text as quoted text, others in hexadecimal; cut after `limit` bytes, with the whole size told.
pub(crate) fn show(bytes: &[u8], limit: usize) -> String {
    let (shown, cut) = bytes.split_at(bytes.len().min(limit));
    let is_text = |text: &str| !text.is_empty() && text.chars().all(|c| !c.is_control());
    let mut out = match std::str::from_utf8(shown) {
        Ok(text) if is_text(text) => format!("{text:?}"),
        _ => format!("0x{}", hex(shown)),
    };
    if !cut.is_empty() {
        // Writing to a string cannot fail.
        let _ = write!(out, "… ({} bytes)", bytes.len());
    }
    out
}

/// Two digits a byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// Sixteen bytes a line: offset, hexadecimal, printable characters.
pub(crate) fn hex_dump(bytes: &[u8]) -> String {
    let mut out = String::new();
    let mut repeats = false;
    for (index, line) in bytes.chunks(16).enumerate() {
        // Equal lines are shown once, as the usual tools do.
        let same = index > 0 && bytes[(index - 1) * 16..].starts_with(line) && line.len() == 16;
        if same {
            out.push_str(if repeats { "" } else { "*\n" });
            repeats = true;
            continue;
        }
        repeats = false;
        let text: String =
            line.iter().map(|b| if (0x20..0x7f).contains(b) { char::from(*b) } else { '.' }).collect();
        let pairs: Vec<String> = line.chunks(2).map(hex).collect();
        let _ = writeln!(out, "{:04x}  {:39}  {text}", index * 16, pairs.join(" "));
    }
    out
}

/// `1.5 MiB (1572864 bytes)`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: &[(u64, &str)] = &[(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match UNITS.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{:.1} {name} ({bytes} bytes)", bytes as f64 / *unit as f64),
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_quoted_and_anything_else_is_hexadecimal() {
        assert_eq!(show(b"users/1", 100), r#""users/1""#);
        assert_eq!(show(&[0, 255], 100), "0x00ff");
        assert_eq!(show(b"", 100), "0x");
        assert_eq!(show(b"abcdef", 3), r#""abc"… (6 bytes)"#);
    }

    #[test]
    fn a_cut_inside_a_character_is_shown_as_bytes() {
        assert_eq!(show("é".as_bytes(), 1), "0xc3… (2 bytes)");
    }

    #[test]
    fn a_dump_shows_equal_lines_once() {
        let mut bytes = vec![0; 64];
        bytes[48..52].copy_from_slice(b"jack");
        let dump = hex_dump(&bytes);
        let lines: Vec<&str> = dump.lines().collect();
        assert_eq!(lines.len(), 3, "{dump}");
        assert_eq!(lines[1], "*");
        assert!(
            lines[2].starts_with("0030  6a61 636b 0000") && lines[2].ends_with("jack............"),
            "{dump}"
        );
    }

    #[test]
    fn sizes_have_a_fitting_unit() {
        assert_eq!(size(1023), "1023 bytes");
        assert_eq!(size(3 << 19), "1.5 MiB (1572864 bytes)");
    }
}
