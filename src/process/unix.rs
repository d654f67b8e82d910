//! The system calls that have no safe wrapper: signal masks and dispositions, signalfd,
//! `clone`, the environment block, and death by signal. The only unsafe code of the crate.

#![expect(unsafe_code, reason = "the one door to raw system calls; each block says why it is sound")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::time::Duration;

use crate::policy::Signal;

/// A set of signals, as the kernel keeps it.
#[derive(Clone)]
pub struct SignalSet(libc::sigset_t);

impl SignalSet {
    /// The set of these signals.
    pub fn of(signals: impl IntoIterator<Item = Signal>) -> Self {
        let mut set = MaybeUninit::uninit();
        // SAFETY: sigemptyset initialises the whole set.
        let mut set = unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            set.assume_init()
        };
        for signal in signals {
            // SAFETY: the set is initialised; a number out of range is refused.
            unsafe { libc::sigaddset(&raw mut set, signal.0) };
        }
        Self(set)
    }

    /// Blocks these signals beside those blocked already; returns the mask as it was.
    pub fn block(&self) -> Self {
        self.change_mask(libc::SIG_BLOCK)
    }

    fn change_mask(&self, how: c_int) -> Self {
        let mut old = Self::of([]);
        // SAFETY: both sets are initialised, `how` is one of the three constants.
        unsafe { libc::sigprocmask(how, &raw const self.0, &raw mut old.0) };
        old
    }
}

/// Whether a signal has arrived that is blocked.
pub fn is_pending(signal: Signal) -> bool {
    let mut pending = SignalSet::of([]);
    // SAFETY: the set is initialised, and only written to; a number out of range is refused.
    unsafe { libc::sigpending(&raw mut pending.0) == 0 && libc::sigismember(&raw const pending.0, signal.0) == 1 }
}

/// Whether a signal is ignored, as an exec'd program inherits it.
pub fn is_ignored(signal: Signal) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: only reads the disposition into a zeroed struct of the right type.
    unsafe {
        libc::sigaction(signal.0, ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// Gives a signal its default action.
pub fn set_default(signal: Signal) {
    set_disposition(signal, libc::SIG_DFL);
}

fn set_disposition(signal: Signal, disposition: libc::sighandler_t) {
    // SAFETY: a zeroed sigaction is a valid one (no flags, empty mask), and the
    // disposition is SIG_DFL or SIG_IGN, never a handler.
    unsafe {
        let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
        action.sa_sigaction = disposition;
        libc::sigaction(signal.0, &raw const action, ptr::null_mut());
    }
}

/// A descriptor that becomes readable when one of the signals is pending.
pub fn signal_descriptor(signals: &SignalSet) -> io::Result<OwnedFd> {
    // SAFETY: -1 asks for a new descriptor; the set is initialised.
    let fd = unsafe { libc::signalfd(-1, &raw const signals.0, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The next pending signal of a signal descriptor, and whether the kernel itself sent it
/// (a terminal did), rather than a process. `None` when none is pending.
pub fn read_signal(descriptor: BorrowedFd<'_>) -> Option<(Signal, bool)> {
    let mut info = MaybeUninit::<libc::signalfd_siginfo>::zeroed();
    let size = size_of::<libc::signalfd_siginfo>();
    // SAFETY: the buffer holds exactly one record, all bit patterns of which are valid.
    let info = unsafe {
        let got = libc::read(descriptor.as_raw_fd(), info.as_mut_ptr().cast(), size);
        if usize::try_from(got) != Ok(size) {
            return None;
        }
        info.assume_init()
    };
    let signal = Signal(i32::try_from(info.ssi_signo).ok()?);
    Some((signal, info.ssi_code == libc::SI_KERNEL))
}

/// A copy of a descriptor by its number, closed on exec and numbered 3 or more. Fails
/// where the number is not open.
pub fn duplicate(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: fcntl takes any number; the copy is new and nobody else's.
    unsafe {
        match libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) {
            copy if copy >= 0 => Ok(OwnedFd::from_raw_fd(copy)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// The reading of one of the kernel's clocks.
///
/// By the C library: rustix looks for the vDSO by itself, which costs more, and under
/// valgrind finds one that is not mapped.
pub fn clock(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a valid timespec, which a failure leaves as it is.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Sends a signal to a process, or to a whole group where `pid` is negative.
pub fn kill(pid: i32, signal: Signal) -> io::Result<()> {
    // SAFETY: kill takes any numbers.
    if unsafe { libc::kill(pid, signal.0) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The group of a process, 0 for this one. The answer is 0 where its leader is outside of
/// this process's PID namespace, which rustix takes for impossible.
pub fn group_of(pid: i32) -> Option<i32> {
    // SAFETY: getpgid takes any number.
    let group = unsafe { libc::getpgid(pid) };
    (group >= 0).then_some(group)
}

/// The session of a process, 0 for this one; 0 as for [`group_of`].
pub fn session_of(pid: i32) -> Option<i32> {
    // SAFETY: getsid takes any number.
    let session = unsafe { libc::getsid(pid) };
    (session >= 0).then_some(session)
}

/// The group in the foreground of a terminal; 0 as for [`group_of`].
pub fn foreground_of(terminal: BorrowedFd<'_>) -> Option<i32> {
    // SAFETY: tcgetpgrp takes any descriptor.
    let group = unsafe { libc::tcgetpgrp(terminal.as_raw_fd()) };
    (group >= 0).then_some(group)
}

/// Sends a signal to this process, unblocked for the moment: returns once it was acted
/// on, which for a stop is after the continuation.
pub fn take(signal: Signal) {
    let set = SignalSet::of([signal]);
    // SAFETY: getpid cannot fail.
    let own = unsafe { libc::getpid() };
    if kill(own, signal).is_ok() {
        set.change_mask(libc::SIG_UNBLOCK).change_mask(libc::SIG_SETMASK);
    }
}

/// Dies of a signal with its default action and without a core file. Returns where the
/// signal cannot kill this process, as PID 1 for example.
pub fn die_of(signal: Signal) {
    let no_core = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: plain values; a failure only means that a core file may be written.
    unsafe {
        libc::setrlimit(libc::RLIMIT_CORE, &raw const no_core);
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
    }
    set_default(signal);
    take(signal);
}

/// The environment that this process was started with, `NAME=value` each.
pub fn environment() -> impl Iterator<Item = &'static CStr> {
    unsafe extern "C" {
        static environ: *const *const c_char;
    }
    let mut index = 0;
    std::iter::from_fn(move || {
        // SAFETY: environ is a null-terminated array of strings that nothing in this
        // process changes or frees (std::env::set_var is never called).
        unsafe {
            if environ.is_null() || (*environ.add(index)).is_null() {
                return None;
            }
            index += 1;
            Some(CStr::from_ptr(*environ.add(index - 1)))
        }
    })
}

/// Everything a child needs between `clone` and `exec`. All of it is prepared before, so
/// that the child allocates nothing.
pub struct Launch<'a> {
    /// Paths to try, in this order.
    pub candidates: &'a [CString],
    /// Whether the candidates came from `PATH` (a directory there is passed over).
    pub searched: bool,
    /// The arguments, the name first.
    pub arguments: &'a [CString],
    /// The environment.
    pub environment: Vec<*const c_char>,
    /// The signal mask to give on.
    pub mask: &'a SignalSet,
    /// Whether to give SIGCHLD on ignored.
    pub ignore_chld: bool,
    /// Whether the child leads a process group of its own.
    pub own_group: bool,
    /// Descriptors to become the standard ones, where these are not the inherited; none of
    /// them is a standard one itself.
    pub descriptors: [Option<RawFd>; 3],
}

/// What the child reads and writes; it shares the memory of its parent until `exec`.
struct Shared<'a> {
    launch: &'a Launch<'a>,
    argv: Vec<*const c_char>,
    /// `/bin/sh`, a slot for the candidate, and the arguments: for a script without `#!`.
    shell_argv: Vec<*const c_char>,
    parent: libc::pid_t,
    failed: Option<LaunchError>,
}

/// Why a child could not be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaunchError {
    /// The system's error number.
    pub errno: i32,
    /// Whether a file of that name was there: then ENOENT speaks of the interpreter that
    /// its first line names, or of its loader.
    pub found: bool,
}

impl From<c_int> for LaunchError {
    fn from(errno: c_int) -> Self {
        Self { errno, found: false }
    }
}

const SHELL: &CStr = c"/bin/sh";
/// Room for a call of `execve` and its neighbours; musl's and glibc's `posix_spawn` use
/// about as much.
const STACK_SIZE: usize = 32 * 1024;

/// Starts a child as [`Launch`] says; returns its pid. The child gets KILL when this
/// process dies.
///
/// `CLONE_VM | CLONE_VFORK`, as `posix_spawn` does it: no copy of the page tables, and
/// this process runs on only when the child has called `exec` or ended.
pub fn launch(launch: &Launch<'_>) -> Result<i32, LaunchError> {
    let pointers = |strings: &[CString]| -> Vec<*const c_char> {
        strings.iter().map(|s| s.as_ptr()).chain([ptr::null()]).collect()
    };
    let argv = pointers(launch.arguments);
    let mut shell_argv = vec![SHELL.as_ptr(), ptr::null()];
    shell_argv.extend_from_slice(argv.get(1..).unwrap_or(&[ptr::null()]));
    // SAFETY: getpid cannot fail.
    let parent = unsafe { libc::getpid() };
    let mut shared = Shared { launch, argv, shell_argv, parent, failed: None };
    let mut stack = Vec::<u128>::with_capacity(STACK_SIZE / size_of::<u128>());
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: the stack is aligned and outlives the child's use of it, as CLONE_VFORK
    // holds this thread until the child has exec'd or ended; the same holds for `shared`,
    // of which the child has the only live reference meanwhile. No signal handler is ever
    // installed, so none can run on the shared memory.
    let pid = unsafe {
        let top = stack.as_mut_ptr().cast::<u8>().add(STACK_SIZE);
        libc::clone(child, top.cast(), flags, (&raw mut shared).cast())
    };
    if pid < 0 {
        return Err(errno().into());
    }
    let Some(error) = shared.failed else { return Ok(pid) };
    // SAFETY: the child ended without exec; this takes its status, so that no zombie stays.
    unsafe { libc::waitpid(pid, ptr::null_mut(), 0) };
    Err(error)
}

extern "C" fn child(shared: *mut c_void) -> c_int {
    // SAFETY: `launch` passes a valid, exclusive pointer and waits meanwhile.
    let shared = unsafe { &mut *shared.cast::<Shared<'_>>() };
    shared.failed = Some(prepare(shared).map_or_else(|| execute(shared), LaunchError::from));
    127
}

fn errno() -> c_int {
    // SAFETY: the location is valid for the thread's life.
    unsafe { *libc::__errno_location() }
}

/// Gives the child what it is to have; `Some(errno)` when that fails.
fn prepare(shared: &Shared<'_>) -> Option<c_int> {
    let launch = shared.launch;
    // SAFETY: plain system calls on this process, which is the child; dispositions and
    // the mask are its own copies, since CLONE_SIGHAND is not given.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
        if libc::getppid() != shared.parent {
            // The parent died before the call above: nobody waits for this attempt.
            libc::_exit(127);
        }
        if launch.own_group && libc::setpgid(0, 0) != 0 {
            return Some(errno());
        }
        for (descriptor, number) in launch.descriptors.into_iter().zip(0..) {
            if descriptor.is_some_and(|descriptor| libc::dup2(descriptor, number) < 0) {
                return Some(errno());
            }
        }
        if launch.ignore_chld {
            set_disposition(Signal::CHLD, libc::SIG_IGN);
        }
        libc::sigprocmask(libc::SIG_SETMASK, &raw const launch.mask.0, ptr::null_mut());
    }
    None
}

/// Becomes the command; returns the error number when no candidate can be executed.
///
/// As a shell does it: what is not there is passed over, what is there and may not be
/// executed is remembered, and a directory in `PATH` that may not be searched is as good
/// as empty (`execvp` reports "permission denied" for it).
fn execute(shared: &mut Shared<'_>) -> LaunchError {
    let mut result = LaunchError::from(libc::ENOENT);
    for candidate in shared.launch.candidates {
        let path = candidate.as_ptr();
        let environment = shared.launch.environment.as_ptr();
        // SAFETY: all arrays are null-terminated and outlive the call.
        unsafe { libc::execve(path, shared.argv.as_ptr(), environment) };
        match errno() {
            errno @ (libc::ENOENT | libc::ENOTDIR | libc::EACCES) => {
                let found = is_file(candidate);
                if found || !shared.launch.searched {
                    result = LaunchError { errno, found };
                }
            }
            libc::ENOEXEC => {
                shared.shell_argv[1] = path;
                // SAFETY: as above.
                unsafe { libc::execve(SHELL.as_ptr(), shared.shell_argv.as_ptr(), environment) };
                return LaunchError { errno: libc::ENOEXEC, found: true };
            }
            errno => return LaunchError { errno, found: true },
        }
    }
    result
}

fn is_file(path: &CStr) -> bool {
    let mut stat = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: the path is a C string and the buffer a zeroed stat.
    unsafe {
        libc::stat(path.as_ptr(), stat.as_mut_ptr()) == 0 && stat.assume_init().st_mode & libc::S_IFMT != libc::S_IFDIR
    }
}
