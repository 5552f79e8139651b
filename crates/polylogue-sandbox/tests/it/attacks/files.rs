//! Files outside of the work directory.

use super::attempts;

attempts! {
    works reading_a_file_outside: r"
attempt('read', lambda: open(OUT + '/secret').read())
attempt('stat', lambda: os.stat(OUT + '/secret'))
attempt('list', lambda: os.listdir(OUT))";
    works writing_a_file_outside: r"
attempt('write', lambda: open(OUT + '/victim', 'w').write('broken'))
attempt('append', lambda: open(OUT + '/victim', 'a').write('broken'))
attempt('truncate', lambda: os.truncate(OUT + '/victim', 0))";
    works making_a_file_outside: r"
attempt('file', lambda: open(OUT + '/new', 'w'))
attempt('directory', lambda: os.mkdir(OUT + '/newdir'))
attempt('fifo', lambda: os.mkfifo(OUT + '/newfifo'))";
    works removing_a_file_outside: r"
attempt('unlink', lambda: os.unlink(OUT + '/victim'))
attempt('rmdir', lambda: os.rmdir(OUT))";
    works moving_a_file_in: "attempt('rename', lambda: os.rename(OUT + '/victim', 'mine'))";
    works moving_a_file_over_one_outside: r"
open('mine', 'w').write('broken')
attempt('replace', lambda: os.replace('mine', OUT + '/victim'))";
    works linking_a_file_in: r"
attempt('hard', lambda: os.link(OUT + '/victim', 'hard'))
attempt('write', lambda: open('hard', 'r+').write('broken'))";
    works following_a_link: r"
os.symlink(OUT + '/secret', 'link')
os.symlink('../victim', 'up')
attempt('read', lambda: open('link').read())
attempt('write', lambda: open('up', 'r+').write('broken'))";
    works walking_up: r"
attempt('relative', lambda: open('../secret').read())
attempt('own root', lambda: open('/proc/self/root' + OUT + '/secret').read())
attempt('own directory', lambda: open('/proc/self/cwd/../secret').read())
up = os.open('..', os.O_RDONLY)
attempt('descriptor', lambda: os.open('secret', os.O_RDONLY, dir_fd=up))";
    works changing_modes_and_times: r"
attempt('chmod', lambda: os.chmod(OUT + '/victim', 0o666))
attempt('chown', lambda: os.chown(OUT + '/victim', os.getuid(), os.getgid()))
attempt('utime', lambda: os.utime(OUT + '/victim'))
attempt('xattr', lambda: os.setxattr(OUT + '/victim', 'user.x', b'1'))";
    works looking_around: r"
for path in ['/root', '/home', '/var', '/run', '/mnt', '/sys', '/etc/shadow', '/etc/hostname', '/etc/machine-id', '/boot', '/srv', '/opt']:
    attempt(path, lambda: os.stat(path))
attempt('users', lambda: must(len(open('/etc/passwd').readlines()) > 1))";
    blind writing_the_system: r"
for path in ['/x', '/usr/x', '/usr/bin/x', '/etc/x', '/etc/passwd', '/dev/x', '/lib/x', '/proc/x', '/proc/self/x']:
    attempt(path, lambda: open(path, 'w'))
attempt('rename', lambda: os.rename('/usr/bin/python3', 'python3'))
attempt('unlink', lambda: os.unlink('/usr/bin/env'))
attempt('rmdir', lambda: os.rmdir('/usr/share'))
attempt('chmod', lambda: os.chmod('/usr/bin/env', 0o777))
attempt('chown', lambda: os.chown('/usr/bin/env', 1000, 1000))
attempt('utime', lambda: os.utime('/usr/bin/env'))
attempt('link', lambda: os.link('/usr/bin/env', 'env'))
attempt('link', lambda: os.link('/etc/passwd', 'passwd'))";
    blind writing_the_system_through_its_descriptors: r"
env = os.open('/usr/bin/env', os.O_RDONLY)
attempt('again', lambda: os.open(f'/proc/self/fd/{env}', os.O_RDWR))
attempt('mode', lambda: os.fchmod(env, 0o777))
attempt('map', lambda: __import__('mmap').mmap(env, 4096, access=2))";
    blind the_old_root: r"
for _ in range(64): os.chdir('..')
attempt('root', lambda: os.stat('root'))
attempt('old', lambda: os.stat('/.old'))
attempt('dotdot', lambda: os.stat('/work/../../../../root'))
attempt('init', lambda: os.stat('/proc/1/root/root'))";
    blind leaving_by_chroot: r"
os.mkdir('cage')
top = os.open('/', os.O_RDONLY)
attempt('chroot', lambda: os.chroot('cage'))
os.fchdir(top)
for _ in range(64): os.chdir('..')
attempt('root', lambda: os.stat('root'))";
    blind opening_by_handle: r"
# The handle of the root directory of most file systems: inode 2.
handle = struct.pack('IiQ', 8, 1, 2)
refused('name_to_handle_at', -100, b'/usr', ctypes.create_string_buffer(200), ctypes.create_string_buffer(8), 0)
refused('open_by_handle_at', os.open('/work', os.O_RDONLY), ctypes.create_string_buffer(handle, 200), 0)";
}
