//! Programs that use too much.

use std::time::{Duration, Instant};

use polylogue_sandbox::{Cancellation, ExitReason, Limits, Program, ProgramResult};

use crate::{Dir, python, run, sandbox, sh, text};

/// Runs within small limits; none where the sandbox does not work.
fn limited(program: &Program, change: impl Fn(&mut Limits)) -> Option<ProgramResult> {
    let dir = Dir::new();
    let sandbox = sandbox(&dir)?;
    let mut limits = Limits { time: Duration::from_secs(60), ..Limits::default() };
    change(&mut limits);
    Some(run(&sandbox.limited(limits), program))
}

#[test]
fn an_endless_loop_ends() {
    let began = Instant::now();
    let time = Duration::from_millis(700);
    let Some(ended) = limited(&sh("echo begun; while :; do :; done"), |limits| limits.time = time) else {
        return;
    };
    assert_eq!((ended.how, ended.how.code(), &*text(&ended)), (ExitReason::TimedOut, 124, "begun\n"));
    assert!(began.elapsed() >= time && began.elapsed() < Duration::from_secs(20));
}

#[test]
fn output_is_cut_while_it_is_read() {
    let Some(ended) = limited(&sh("yes"), |limits| limits.output_bytes = 10_000) else { return };
    assert_eq!((ended.how, ended.output.len()), (ExitReason::TooMuchOutput, 10_000));
    assert_eq!(ended.how.code(), 137);
}

#[test]
fn a_process_cannot_take_more_memory() {
    let bomb = python("try:\n  x = bytearray(600 << 20)\nexcept MemoryError: print('no memory')");
    let Some(ended) = limited(&bomb, |limits| limits.memory_bytes = 256 << 20) else { return };
    assert_eq!((ended.how, &*text(&ended)), (ExitReason::Exited(0), "no memory\n"));
}

#[test]
fn many_processes_cannot_take_more_memory_together() {
    let bomb = python(
        "import os, time\nfor _ in range(8):\n  if not os.fork():\n    x = bytearray(b'x') * (60 << 20)\n    time.sleep(50)\ntime.sleep(50)",
    );
    let Some(ended) = limited(&bomb, |limits| limits.memory_bytes = 150 << 20) else { return };
    assert_eq!(ended.how, ExitReason::TooMuchMemory);
}

#[test]
fn shared_memory_counts() {
    let bomb = python(
        "import mmap, time\nx = mmap.mmap(-1, 400 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1\ntime.sleep(50)",
    );
    let Some(ended) = limited(&bomb, |limits| limits.memory_bytes = 150 << 20) else { return };
    assert_eq!(ended.how, ExitReason::TooMuchMemory);
}

/// Whether the kernel counts the memory of programs here; says so where it does not.
fn memory_is_counted() -> bool {
    let found = polylogue_sandbox::what_is_enforced().into_iter().find(|measure| measure.name == "memory");
    let measure = found.unwrap();
    if !measure.holds {
        polylogue_test::skip::skipped(&measure.detail);
    }
    measure.holds
}

#[test]
fn buffers_of_sockets_are_memory() {
    if !memory_is_counted() {
        return;
    }
    let bomb = python(
        "import os, socket, time\nkept = []\nfor _ in range(12):\n  if not os.fork(): break\nfor _ in range(200):\n  a, b = socket.socketpair()\n  a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)\n  a.setblocking(False)\n  try:\n    while True: a.send(bytes(100000))\n  except OSError: kept.append((a, b))\ntime.sleep(50)",
    );
    let Some(ended) = limited(&bomb, |limits| limits.memory_bytes = 200 << 20) else { return };
    assert_eq!(ended.how, ExitReason::TooMuchMemory);
}

#[test]
fn page_tables_are_memory() {
    // Memory that is only read takes none, but for the tables: one page of them for each 2 MiB.
    let bomb = python(
        "import ctypes, os, time\nlibc = ctypes.CDLL(None)\nlibc.mmap.restype = ctypes.c_void_p\nlibc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]\nfor _ in range(10):\n  if not os.fork(): break\nbase = libc.mmap(None, 64 << 30, 1, 0x4022, -1, 0)\nfor nth in range(30000): ctypes.string_at(base + (nth << 21), 1)\ntime.sleep(50)",
    );
    let Some(ended) = limited(&bomb, |limits| limits.memory_bytes = 200 << 20) else { return };
    assert_eq!(ended.how, ExitReason::TooMuchMemory);
}

#[test]
fn a_fork_bomb_reaches_the_limit_of_processes() {
    let bomb = python("import os, time\nwhile True:\n  try: os.fork()\n  except OSError: time.sleep(0.01)");
    let change = |limits: &mut Limits| (limits.processes, limits.time) = (20, Duration::from_secs(3));
    let Some(ended) = limited(&bomb, change) else { return };
    // The kernel holds programs to it, so that time runs out; root's only in a control group, else they are counted from
    // outside.
    assert!(matches!(ended.how, ExitReason::TimedOut | ExitReason::TooManyProcesses), "{:?}", ended.how);
}

#[test]
fn a_file_cannot_grow_without_end() {
    let fill = sh("dd if=/dev/zero of=big bs=1M count=50 2>/dev/null; stat -c %s big");
    let Some(ended) = limited(&fill, |limits| limits.file_bytes = 5 << 20) else { return };
    assert!(text(&ended).ends_with(&format!("{}\n", 5 << 20)), "{}", text(&ended));
    let one = Program::new("dd").arg("if=/dev/zero").arg("of=big").arg("bs=1M").arg("count=50");
    let Some(ended) = limited(&one, |limits| limits.file_bytes = 5 << 20) else { return };
    assert_eq!(ended.how.to_string(), "Ended: a file grew too large");
    // One file is no larger than all may be together, which are looked at only from time to time.
    let Some(ended) = limited(&fill, |limits| limits.disk_bytes = 3 << 20) else { return };
    assert!(text(&ended).ends_with(&format!("{}\n", 3 << 20)), "{}", text(&ended));
}

#[test]
fn the_work_directory_cannot_be_filled() {
    let fill = sh("i=0; while :; do i=$((i+1)); head -c 1000000 /dev/zero > f$i; done");
    let Some(ended) = limited(&fill, |limits| limits.disk_bytes = 5 << 20) else { return };
    assert_eq!(ended.how, ExitReason::TooMuchDisk);
}

/// Programs that each end before anyone looks.
#[test]
fn many_quick_programs_cannot_fill_the_work_directory() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let sandbox = sandbox.limited(Limits { disk_bytes: 10 << 20, ..Limits::default() });
    let mut shown = Vec::new();
    for nth in 0..12 {
        // One file with bytes, and one that is all hole, which could be filled later without growing.
        let code = format!("head -c 4000000 /dev/zero > f{nth}; truncate -s 4000000 h{nth}; echo ended");
        match sandbox.run(&sh(&code), &Cancellation::new()) {
            Ok(ended) => shown.push(ended.how),
            Err(error) => {
                assert!(error.to_string().contains("holds more than twice what it may, 10 MiB"), "{error}");
                break;
            }
        }
    }
    assert!(shown.contains(&ExitReason::TooMuchDisk), "{shown:?}");
    let mut bytes = 0;
    for entry in std::fs::read_dir(sandbox.work()).unwrap() {
        bytes += entry.unwrap().metadata().unwrap().len();
    }
    assert!(bytes <= 21 << 20, "{bytes} bytes after {shown:?}");
    assert_eq!(sandbox.free_bytes(), 0);
}

/// A program can delete files in a directory that is full.
#[test]
fn files_can_be_removed_from_a_full_work_directory() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    std::fs::write(sandbox.work().join("large"), vec![1; 6 << 20]).unwrap();
    let sandbox = sandbox.limited(Limits { disk_bytes: 5 << 20, ..Limits::default() });
    let ended = run(&sandbox, &sh("head -c 100000 /dev/zero > more; rm -f large more; echo removed"));
    assert_eq!(
        (ended.how, text(&ended).contains("removed")),
        (ExitReason::Exited(0), true),
        "{}",
        text(&ended)
    );
    assert!(sandbox.free_bytes() > 4 << 20);
}

#[test]
fn files_without_a_name_count() {
    let fill = python(
        "import os, time\nkept = []\nfor nth in range(20):\n  f = open('f', 'wb')\n  f.write(bytes(1 << 20))\n  f.flush()\n  os.unlink('f')\n  kept.append(f)\ntime.sleep(50)",
    );
    let Some(ended) = limited(&fill, |limits| limits.disk_bytes = 5 << 20) else { return };
    assert_eq!(ended.how, ExitReason::TooMuchDisk);
}

#[test]
fn files_in_hidden_directories_count() {
    let fill = python(
        "import os, time\nos.makedirs('a/b')\n[open(f'a/b/{f}', 'wb').write(bytes(4 << 20)) for f in range(5)]\nos.chmod('a/b', 0)\nos.chmod('a', 0)\ntime.sleep(50)",
    );
    let Some(ended) = limited(&fill, |limits| limits.disk_bytes = 5 << 20) else { return };
    assert_eq!(ended.how, ExitReason::TooMuchDisk);
}

#[test]
fn temporary_files_cannot_be_too_many() {
    let bomb = python(
        "import os\ntry:\n  for f in range(10**7): os.close(os.open(f'/tmp/{f}', os.O_CREAT | os.O_WRONLY))\nexcept OSError as error: print(error.strerror)",
    );
    let Some(ended) = limited(&bomb, |_| {}) else { return };
    assert_eq!(text(&ended), "No space left on device\n");
}

#[test]
fn temporary_directories_are_of_limited_size() {
    let fill = python(
        "for path in ['/tmp/f', '/dev/shm/f']:\n  try:\n    with open(path, 'wb') as f:\n      for _ in range(1000): f.write(bytes(1 << 20))\n    print('full', path)\n  except OSError as error: print(error.strerror)",
    );
    let Some(ended) = limited(&fill, |limits| limits.file_bytes = 1 << 40) else { return };
    assert_eq!(text(&ended), "No space left on device\nNo space left on device\n");
}

#[test]
fn another_thread_can_cancel_a_program() {
    let dir = Dir::new();
    let Some(sandbox) = sandbox(&dir) else { return };
    let cancellation = Cancellation::new();
    let other = cancellation.clone();
    let ended = std::thread::scope(|scope| {
        let running = scope.spawn(|| sandbox.run(&sh("sleep 50"), &cancellation).unwrap());
        other.cancel();
        running.join().unwrap()
    });
    assert_eq!(ended.how, ExitReason::Cancelled);
}
