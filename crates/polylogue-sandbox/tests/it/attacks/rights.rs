//! Rights that a program was not given.

use super::attempts;

attempts! {
    blind becoming_another_user: r"
for action in [lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.setgroups([0]), lambda: os.setresuid(0, 0, 0),
        lambda: os.setresuid(-1, 65534, -1), lambda: os.setregid(0, 0)]:
    attempt('set id', action)
attempt('root', lambda: must(0 in os.getresuid() + os.getresgid()))";
    works files_that_are_run_with_rights_of_others: r"
open('f', 'w').close()
attempt('chmod', lambda: os.chmod('f', 0o4755))
attempt('setgid', lambda: os.chmod('f', 0o2755))
attempt('fchmod', lambda: os.fchmod(os.open('f', os.O_RDWR), 0o6755))
attempt('open', lambda: must(os.fstat(os.open('g', os.O_CREAT | os.O_WRONLY, 0o4755)).st_mode & 0o4000))
attempt('fchmodat2', lambda: call('fchmodat2', -100, b'f', 0o4755, 0))
attempt('openat2', lambda: must(os.fstat(call('openat2', -100, b'h', struct.pack('QQQ', 0o101, 0o4755, 0), 24)).st_mode & 0o4000))
attempt('mknod', lambda: must(os.mknod('k', 0o104755) or os.stat('k').st_mode & 0o4000))
attempt('mkdir', lambda: must(os.mkdir('d', 0o2755) or os.stat('d').st_mode & 0o2000))";
    blind programs_with_rights_of_others: r"
import glob
found = [path for place in ['/usr/bin/*', '/usr/sbin/*', '/usr/lib/*/*', '/usr/libexec/*'] for path in glob.glob(place)
    if os.path.isfile(path) and os.stat(path).st_mode & 0o6000]
print(len(found), 'programs')
def shell_of(command):
    ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=20)
    must(ran.returncode == 0 and b'uid=0' in ran.stdout)
attempt('su', lambda: shell_of(['su', '-c', 'id']))
attempt('sudo', lambda: shell_of(['sudo', '-n', 'id']))
attempt('newgrp', lambda: shell_of(['newgrp', 'root', '-c', 'id']))
attempt('mount', lambda: subprocess.run(['mount', '-t', 'tmpfs', 'x', '/tmp'], check=True, capture_output=True))";
    blind capabilities: r"
open('f', 'w').close()
attempt('of a file', lambda: os.setxattr('f', 'security.capability', b'\1\0\0\2' + b'\xff' * 4 + b'\0' * 12))
# PR_CAP_AMBIENT_RAISE and PR_CAPBSET_READ.
for number in range(41):
    attempt('ambient', lambda: must(libc.prctl(47, 2, number, 0, 0) == 0))
    attempt('bounding', lambda: must(libc.prctl(24, number, 0, 0, 0) == 1))
with open('/proc/self/status') as status:
    for line in status:
        if line.startswith('Cap') and int(line.split()[1], 16): print('ESCAPED', line)
        if line.startswith('NoNewPrivs') and line.split()[1] != '1': print('ESCAPED', line)
        if line.startswith('Seccomp:') and line.split()[1] != '2': print('ESCAPED', line)";
    blind leaving_what_holds_it: r"
# PR_SET_NO_NEW_PRIVS to 0, PR_SET_SECCOMP to none.
attempt('privileges', lambda: must(libc.prctl(38, 0, 0, 0, 0) == 0))
attempt('filter', lambda: must(libc.prctl(22, 0, 0, 0, 0) == 0))";
    blind namespaces: r"
for flag in [0x10000000, 0x20000, 0x40000000, 0x20000000, 0x8000000, 0x4000000, 0x2000000, 0x80]:
    refused('unshare', flag)
    if flag != 0x80:
        refused('clone', flag | 17, 0, 0, 0, 0)
# What no filter can look into is not there.
refused('clone3', struct.pack('QQQQQQQQ', 0x10000000, 0, 0, 0, 17, 0, 0, 0), 64)";
    works namespaces_by_a_program: "attempt('unshare', lambda: subprocess.run(['unshare', '--user', '--map-root-user', 'true'], check=True, capture_output=True))";
    blind namespaces_of_others: r"
for kind in ['user', 'mnt', 'net', 'pid', 'uts', 'ipc', 'cgroup']:
    attempt(kind, lambda: os.open(f'/proc/{HOST}/ns/{kind}', os.O_RDONLY))
    attempt(kind, lambda: os.open(f'/proc/1/ns/{kind}', os.O_RDONLY))
    refused('setns', os.open(f'/proc/self/ns/{kind}', os.O_RDONLY), 0)
# NS_GET_PARENT and NS_GET_USERNS.
import fcntl
for request in [0xb702, 0xb701]:
    attempt('parent', lambda: fcntl.ioctl(os.open('/proc/self/ns/user', os.O_RDONLY), request))";
    blind mounting: r"
refused('mount', b'tmpfs', b'/work', b'tmpfs', 0, 0)
refused('mount', 0, b'/usr', 0, 4096 | 32, 0)
refused('mount', b'/proc', b'/work', 0, 4096, 0)
refused('mount', b'proc', b'/work', b'proc', 0, 0)
refused('umount2', b'/usr', 2)
refused('pivot_root', b'/work', b'/work')";
    blind mounting_by_newer_calls: r"
refused('fsopen', b'tmpfs', 0)
refused('fsconfig', 0, 0, 0, 0, 0)
refused('fsmount', 0, 0, 0)
refused('fspick', -100, b'/', 0)
refused('open_tree', -100, b'/usr', 1)
refused('move_mount', -100, b'/usr', -100, b'/work', 0)
refused('mount_setattr', -100, b'/usr', 0, struct.pack('QQQQ', 0, 1, 0, 0), 32)";
    blind raising_limits: r"
import resource
for limit in [resource.RLIMIT_NPROC, resource.RLIMIT_FSIZE, resource.RLIMIT_DATA, resource.RLIMIT_NOFILE, resource.RLIMIT_CORE]:
    attempt(limit, lambda: resource.setrlimit(limit, (2**62, 2**62)))
attempt('oom', lambda: open('/proc/self/oom_score_adj', 'w').write('-1000'))";
}
