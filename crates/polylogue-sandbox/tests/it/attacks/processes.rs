//! Other processes of this machine.

use super::attempts;

attempts! {
    works signals: r"
attempt('kill', lambda: os.kill(HOST, 0))
attempt('parent', lambda: os.kill(os.getppid(), 0) if os.getppid() > 1 else must(False))
def by_descriptor():
    return call('pidfd_send_signal', call('pidfd_open', HOST, 0), 0, 0, 0)
attempt('pidfd', by_descriptor)";
    blind signals_to_everyone: r"
for pid in range(2, 70000):
    if pid == os.getpid(): continue
    try:
        os.kill(pid, 0)
        print('ESCAPED', pid)
    except (ProcessLookupError, PermissionError): pass
# The first process is not even to be stopped by what it encloses.
for number in [signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM]:
    try: os.kill(1, number)
    except PermissionError: pass
signal.signal(signal.SIGTERM, signal.SIG_IGN)
try: os.kill(-1, signal.SIGTERM)
except ProcessLookupError: pass";
    blind tracing: r"
refused('ptrace', 16, HOST, 0, 0)
refused('ptrace', 16, 1, 0, 0)
refused('ptrace', 0x4206, 1, 0, 0)
refused('ptrace', 0, 0, 0, 0)";
    blind reading_memory_of_others: r"
buffer = ctypes.create_string_buffer(16)
vector = ctypes.create_string_buffer(struct.pack('QQ', ctypes.addressof(buffer), 16))
for pid in [HOST, 1, os.getpid()]:
    refused('process_vm_readv', pid, vector, 1, vector, 1, 0)
    refused('process_vm_writev', pid, vector, 1, vector, 1, 0)";
    blind taking_descriptors_of_others: r"
me = call('pidfd_open', os.getpid(), 0)
refused('pidfd_getfd', me, 1, 0)
refused('kcmp', os.getpid(), os.getpid(), 0, 1, 1)
refused('process_madvise', me, 0, 0, 21, 0)";
    works priorities_of_others: r"
attempt('get', lambda: os.getpriority(os.PRIO_PROCESS, HOST))
attempt('set', lambda: os.setpriority(os.PRIO_PROCESS, HOST, os.getpriority(os.PRIO_PROCESS, HOST)))
attempt('processors', lambda: os.sched_setaffinity(HOST, os.sched_getaffinity(HOST)))";
    works limits_of_others: r"
import resource
attempt('limit', lambda: resource.prlimit(HOST, resource.RLIMIT_NOFILE))
def score():
    path = f'/proc/{HOST}/oom_score_adj'
    open(path, 'r+').write(open(path).read())
attempt('score', score)";
    blind going_before_all_others: r"
attempt('nice', lambda: os.nice(-5))
attempt('real time', lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50)))
attempt('round robin', lambda: os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1)))
attempt('deadline', lambda: call('sched_setattr', 0, struct.pack('IIQiIQQQ', 48, 6, 0, 0, 0, 10**7, 10**8, 10**8), 0))";
}
