//! Devices and terminals.

use super::attempts;

attempts! {
    works devices_of_the_machine: r"
for path in ['/dev/mem', '/dev/kmsg', '/dev/vda', '/dev/sda', '/dev/fuse', '/dev/kvm', '/dev/net/tun', '/dev/ptmx', '/dev/pts', '/dev/loop-control', '/dev/mqueue', '/dev/console']:
    attempt(path, lambda: os.stat(path))
attempt('all', lambda: must(set(os.listdir('/dev')) - {'fd', 'full', 'null', 'random', 'shm', 'stderr', 'stdin', 'stdout', 'urandom', 'zero'}))";
    blind making_devices: r"
for kind in [stat.S_IFCHR, stat.S_IFBLK]:
    for number in [(1, 1), (1, 5), (8, 0), (254, 0), (5, 2)]:
        attempt('mknod', lambda: os.mknod('device', kind | 0o666, os.makedev(*number)))
        attempt('tmp', lambda: os.mknod('/tmp/device', kind | 0o666, os.makedev(*number)))
        attempt('dev', lambda: os.mknod('/dev/device', kind | 0o666, os.makedev(*number)))
os.mkfifo('fifo')";
    blind typing_at_a_terminal: r"
import fcntl
def faked(request, fd):
    '''That it is not a terminal says nothing of the filter.'''
    try: fcntl.ioctl(fd, request, b'x')
    except OSError as error: must(error.errno != errno.EPERM, error)
for request in [0x5412, 0x541C]:
    for fd in [0, 1, 2]: attempt((request, fd), lambda: faked(request, fd))
attempt('terminal', lambda: os.open('/dev/tty', os.O_RDWR))
attempt('controlling', lambda: os.tcgetpgrp(0))
attempt('new', lambda: os.openpty())
attempt('session', lambda: must(os.getsid(0) not in (0, 1, os.getpid())))";
    blind terminals_made_again: "attempt('ptmx', lambda: os.open('/dev/pts/ptmx', os.O_RDWR))\nattempt('pty', lambda: __import__('pty').fork())";
    blind changing_the_harmless_devices: r"
open('/dev/null', 'w').write('x')
for name in ['null', 'zero', 'full', 'random', 'urandom']:
    # The mode that they have anyway, lest a test that fails break the machine.
    attempt(name, lambda: os.chmod('/dev/' + name, 0o666))
    attempt(name, lambda: os.chown('/dev/' + name, os.getuid(), os.getgid()))
    attempt(name, lambda: os.utime('/dev/' + name))
    attempt(name, lambda: os.fchmod(os.open('/dev/' + name, os.O_RDWR), 0o666))
import fcntl
# RNDADDENTROPY and RNDZAPENTCNT.
for request in [0x40085203, 0x5204]:
    attempt('entropy', lambda: fcntl.ioctl(os.open('/dev/random', os.O_RDWR), request, bytes(64)))";
}
