//! System calls for the socket of the proxy. As in `sys`, nothing allocates.
#![allow(unsafe_code, reason = "this is where system calls are made")]

use std::ffi::c_int;
use std::mem::{size_of, zeroed};
use std::os::fd::{FromRawFd, OwnedFd};
use std::ptr;

use super::sys::{Outcome, close, errno};

fn made(fd: c_int) -> Result<c_int, i32> {
    if fd < 0 { Err(errno()) } else { Ok(fd) }
}

fn done(result: c_int) -> Outcome {
    made(result).map(drop)
}

/// Two ends that are closed when a program is executed.
pub(super) fn pair() -> Result<[OwnedFd; 2], i32> {
    let mut fds = [0; 2];
    // SAFETY: there is room for two.
    done(unsafe {
        libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0, fds.as_mut_ptr())
    })?;
    // SAFETY: they were created just now and have no other owner.
    Ok(fds.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }))
}

/// Switches the loopback interface of a new network on; the kernel gives it its addresses.
pub(super) fn loopback_up() -> Outcome {
    // SAFETY: a call on numbers.
    let socket = made(unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) })?;
    // SAFETY: of numbers only, for which zero is a value.
    let mut request: libc::ifreq = unsafe { zeroed() };
    for (place, letter) in request.ifr_name.iter_mut().zip(*b"lo") {
        *place = libc::c_char::from_ne_bytes([letter]);
    }
    request.ifr_ifru.ifru_flags = 1; // IFF_UP
    // SAFETY: the request is laid out as the kernel has it.
    let result = done(unsafe { libc::ioctl(socket, libc::SIOCSIFFLAGS as _, &raw const request) });
    close(socket);
    result
}

/// A socket that listens.
pub(super) fn listen_on_loopback(port: u16) -> Result<c_int, i32> {
    // SAFETY: a call on numbers.
    let socket = made(unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) })?;
    // SAFETY: of numbers only, for which zero is a value.
    let mut address: libc::sockaddr_in = unsafe { zeroed() };
    address.sin_family = libc::AF_INET as libc::sa_family_t;
    address.sin_port = port.to_be();
    address.sin_addr.s_addr = u32::from_be_bytes([127, 0, 0, 1]).to_be();
    let length = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    // SAFETY: the address is as long as is said.
    done(unsafe { libc::bind(socket, (&raw const address).cast(), length) })?;
    // SAFETY: a call on numbers.
    done(unsafe { libc::listen(socket, 64) })?;
    Ok(socket)
}

/// The control data of a message: one descriptor.
#[repr(C, align(8))]
struct ControlBuffer([u8; 64]);

/// A message of one byte, with room for a descriptor next to it.
fn message(byte: &mut libc::iovec, room: &mut ControlBuffer) -> libc::msghdr {
    // SAFETY: of numbers and pointers only, for which zero is a value.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = byte;
    message.msg_iovlen = 1;
    message.msg_control = room.0.as_mut_ptr().cast();
    // SAFETY: a sum.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(size_of::<c_int>() as u32) } as _;
    message
}

/// Sends a descriptor to the other end.
pub(super) fn send_descriptor(to: c_int, fd: c_int) -> Outcome {
    let (mut byte, mut room) = (0_u8, ControlBuffer([0; 64]));
    let mut vector = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let message = message(&mut vector, &mut room);
    // SAFETY: the room is larger than the header and a descriptor, and aligned as headers are.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(size_of::<c_int>() as u32) as _;
        ptr::write_unaligned(libc::CMSG_DATA(header).cast(), fd);
        match libc::sendmsg(to, &raw const message, libc::MSG_NOSIGNAL) {
            1 => Ok(()),
            _ => Err(errno()),
        }
    }
}

/// Waits for a descriptor; none when the other end is closed instead.
pub(super) fn receive_descriptor(from: c_int) -> Option<OwnedFd> {
    let (mut byte, mut room) = (0_u8, ControlBuffer([0; 64]));
    let mut vector = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let mut message = message(&mut vector, &mut room);
    // SAFETY: all that the message points to is there while it is received; the header is looked at before it is read.
    unsafe {
        while libc::recvmsg(from, &raw mut message, libc::MSG_CMSG_CLOEXEC) < 0 {
            if errno() != libc::EINTR {
                return None;
            }
        }
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        if header.is_null()
            || (*header).cmsg_level != libc::SOL_SOCKET
            || (*header).cmsg_type != libc::SCM_RIGHTS
        {
            return None;
        }
        let fd: c_int = ptr::read_unaligned(libc::CMSG_DATA(header).cast());
        (fd >= 0).then(|| OwnedFd::from_raw_fd(fd))
    }
}
