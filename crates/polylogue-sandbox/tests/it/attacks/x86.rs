//! What only processors of this family have.

use polylogue_sandbox::ExitReason;

use super::{attempts, bait, program};
use crate::{Dir, run, sandbox, text};

attempts! {
    blind calls_of_another_interface: r"
SYS.update({'x32 getpid': 0x40000000 | 39, 'x32 ptrace': 0x40000000 | 521, 'x32 execve': 0x40000000 | 520})
refused('x32 getpid')
refused('x32 ptrace', 16, 1, 0, 0)";
    blind rights_over_the_processor: r"
SYS.update({'iopl': 172, 'ioperm': 173, 'modify_ldt': 154, 'uselib': 134})
refused('iopl', 3)
refused('ioperm', 0, 1, 1)
refused('modify_ldt', 0, 0, 0)
refused('uselib', b'x')";
}

/// Calls as programs of 32 bits make them have other numbers, which the filter does not know.
#[test]
fn calls_of_32_bits() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    bait(&dir.0);
    // mov eax, 20 (getpid); int 0x80; ret
    let code = r"
import mmap
memory = mmap.mmap(-1, 4096, prot=7)
memory.write(b'\xb8\x14\0\0\0\xcd\x80\xc3')
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
print('ready', flush=True)
print('ESCAPED', ctypes.CFUNCTYPE(ctypes.c_int)(address)())";
    let ended = run(&sandbox, &program(&dir.0, code));
    assert!(matches!(ended.how, ExitReason::Signaled(_)) && text(&ended) == "ready\n", "{:?}", text(&ended));
}
