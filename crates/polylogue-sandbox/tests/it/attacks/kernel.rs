//! The kernel itself.

use super::attempts;

attempts! {
    blind programs_in_the_kernel: r"
# BPF_PROG_LOAD of a filter for sockets, which ordinary users once could; BPF_MAP_CREATE.
refused('bpf', 5, ctypes.create_string_buffer(128), 128)
refused('bpf', 0, ctypes.create_string_buffer(struct.pack('IIIII', 2, 4, 4, 1, 0), 128), 128)";
    blind counters: "refused('perf_event_open', ctypes.create_string_buffer(struct.pack('IIQ', 1, 112, 0), 112), 0, -1, -1, 0)";
    blind faults_handled_by_programs: "refused('userfaultfd', 0)\nrefused('userfaultfd', 1)";
    works input_and_output_rings: r"
attempt('setup', lambda: call('io_uring_setup', 8, ctypes.create_string_buffer(256)))
if not os.path.exists(OUT):
    refused('io_uring_enter')
    refused('io_uring_register')";
    blind another_kernel: r"
refused('kexec_load', 0, 0, 0, 0)
refused('kexec_file_load', -1, -1, 0, 0, 0)
refused('reboot', 0xfee1dead, 672274793, 0x89abcdef, 0)
attempt('sysrq', lambda: open('/proc/sysrq-trigger', 'w'))";
    blind modules: r"
refused('init_module', ctypes.create_string_buffer(64), 64, b'')
refused('finit_module', 0, b'', 0)
refused('delete_module', b'x', 0)";
    blind the_clock: r"
now = time.time_ns()
value = struct.pack('qq', now // 10**9, now % 10**9)
refused('clock_settime', 0, value)
refused('settimeofday', value, 0)
refused('adjtimex', ctypes.create_string_buffer(struct.pack('I', 1), 256))
refused('clock_adjtime', 0, ctypes.create_string_buffer(struct.pack('I', 1), 256))
attempt('library', lambda: time.clock_settime(time.CLOCK_REALTIME, time.time()))";
    blind the_name_of_the_machine: r"
refused('sethostname', b'owned', 5)
refused('setdomainname', b'owned', 5)
attempt('proc', lambda: open('/proc/sys/kernel/hostname', 'w').write('owned'))";
    works files_in_memory: r"
def run():
    fd = os.memfd_create('program')
    os.write(fd, open('/bin/true', 'rb').read())
    return subprocess.run([f'/proc/self/fd/{fd}'], pass_fds=[fd], check=True)
attempt('memfd', run)
if not os.path.exists(OUT):
    refused('memfd_create', b'x', 0)
    refused('memfd_secret', 0)";
    works memory_that_outlives_programs: r"
def shared():
    number = call('shmget', 0, 4096, 0o1600)
    libc.shmctl(number, 0, 0)
    return number
attempt('shm', shared)
if not os.path.exists(OUT):
    for name in ['shmget', 'semget', 'msgget', 'mq_open']: refused(name)";
    blind memory_that_stays: r"
refused('mlock', 0, 0)
refused('mlockall', 1)
refused('vmsplice', 1, 0, 0, 0)
refused('move_pages', 0, 0, 0, 0, 0, 0)
refused('migrate_pages', 0, 0, 0, 0)";
    blind accounts_and_swap: r"
refused('acct', 0)
refused('swapon', b'x', 0)
refused('swapoff', b'x')
refused('quotactl', 0x80000100, 0, 0, 0)
refused('fanotify_init', 0, 0)
refused('vhangup')";
    works another_personality: r"
attempt('fixed addresses', lambda: call('personality', 0x0040000))
attempt('executable memory', lambda: call('personality', 0x0400000))
attempt('another system', lambda: call('personality', 6))
call('personality', 0xffffffff)";
    blind settings_of_the_kernel: r"
for path in ['/proc/sys/kernel/core_pattern', '/proc/sys/kernel/modprobe', '/proc/sys/vm/drop_caches', '/proc/sys/vm/overcommit_memory',
        '/proc/sys/fs/binfmt_misc/register', '/proc/sys/net/ipv4/ip_forward', '/sys/kernel/uevent_helper', '/sys/kernel/debug', '/sys/power/state']:
    attempt(path, lambda: open(path, 'r+b'))
    attempt(path, lambda: os.stat(path))";
    works what_the_kernel_tells: r"
for path in ['/proc/kallsyms', '/proc/meminfo', '/proc/modules', '/proc/partitions', '/proc/cmdline', '/proc/interrupts', '/proc/kcore']:
    attempt(path, lambda: os.stat(path))";
    blind groups_that_run_programs_when_they_end: r"
attempt('list', lambda: must([line for line in open('/proc/self/mountinfo') if 'cgroup' in line]))
refused('mount', b'cgroup', b'/tmp', b'cgroup', 0, b'memory')
refused('mount', b'cgroup2', b'/tmp', b'cgroup2', 0, 0)
attempt('agent', lambda: open('/sys/fs/cgroup/release_agent', 'w'))";
    blind dumps_of_memory: r"
import resource
# At any other limit than 1 the kernel may hand the dump to a program of the host.
attempt('limit', lambda: must(resource.getrlimit(resource.RLIMIT_CORE) != (1, 1)))
attempt('limit', lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))
attempt('limit', lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 1)))
attempt('limit', lambda: resource.prlimit(0, resource.RLIMIT_CORE, (0, 0)))
child = os.fork()
if not child: os.abort()
status = os.waitpid(child, 0)[1]
attempt('core', lambda: must(os.WCOREDUMP(status) or os.listdir('.')))";
    blind calls_that_are_on_no_list: r"
# By number, which is the same on all processors: calls of newer kernels, and numbers that no kernel has yet.
NEW = {'process_mrelease': 448, 'set_mempolicy_home_node': 450, 'cachestat': 451, 'map_shadow_stack': 453,
    'statmount': 457, 'listmount': 458, 'lsm_get_self_attr': 459, 'lsm_set_self_attr': 460, 'lsm_list_modules': 461, 'mseal': 462,
    'setxattrat': 463, 'getxattrat': 464, 'listxattrat': 465, 'removexattrat': 466, 'open_tree_attr': 467, 'file_getattr': 468,
    'file_setattr': 469, 'next': 470, 'later': 500, 'last': 1000}
SYS.update(NEW)
for name in NEW: refused(name)
for name in ['mbind', 'set_mempolicy', 'sched_setattr']: refused(name)";
    blind what_all_processes_of_the_user_share: r"
import fcntl, resource
refused('inotify_init1', 0)
refused('inotify_add_watch', 0, b'/work', 2)
refused('io_setup', 1, ctypes.create_string_buffer(8))
end = os.pipe()[1]
attempt('pages of pipes', lambda: fcntl.fcntl(end, 1031, 1 << 20))
for kind in [30, 16, 38]:
    attempt('socketpair', lambda: socket.socketpair(kind, socket.SOCK_SEQPACKET))
# Those that are in flight between sockets are counted for the user: fewer than ordinary processes may have.
must(resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 1024)
kept = []
def send():
    for n in range(20):
        a, b = socket.socketpair()
        a.setblocking(False)
        for m in range(40): socket.send_fds(a, [b'x'], [0] * 1)
        kept.append((a, b))
attempt('descriptors in flight', lambda: must((send(), len(kept))[1] * 40 > 520, 'stopped'))
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
def queue():
    for n in range(5000): must(libc.sigqueue(os.getpid(), int(signal.SIGRTMIN), 0) == 0)
attempt('signals that wait', queue)";
}
