//! Numbers of variable length: seven bits per byte, the lowest first; the highest bit is set in all bytes but the last.

pub(crate) fn write(out: &mut Vec<u8>, mut value: usize) {
    while value > 0x7f {
        out.push(low_bits(value) | 0x80);
        value >>= 7;
    }
    out.push(low_bits(value));
}

fn low_bits(value: usize) -> u8 {
    u8::try_from(value & 0x7f).unwrap_or_default()
}

/// Reads a number and moves `bytes` behind it; none if it is cut off or too large.
pub(crate) fn read(bytes: &mut &[u8]) -> Option<usize> {
    let mut value = 0_usize;
    for shift in (0..usize::BITS).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = usize::from(byte & 0x7f);
        let shifted = bits.checked_shl(shift).filter(|shifted| shifted >> shift == bits)?;
        value |= shifted;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_were_written() {
        for value in [0, 1, 0x7f, 0x80, 0x3fff, 0x4000, 1 << 31, usize::MAX] {
            let mut bytes = Vec::new();
            write(&mut bytes, value);
            bytes.push(9);
            let mut rest = bytes.as_slice();
            assert_eq!((read(&mut rest), rest), (Some(value), [9].as_slice()));
        }
    }

    #[test]
    fn cut_off_and_too_large_numbers_are_refused() {
        for bytes in [&[][..], &[0x80], &[0xff; 11]] {
            assert_eq!(read(&mut &*bytes), None);
        }
    }
}
