//! Processors of their own for the database and for the workers, so that neither lives on those of the other. Processes use the processors of
//! the thread that starts them, which takes no rights, as a control group would.

use std::fmt;

use crate::job::Result;

/// Some processors, by their numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Processors(Vec<usize>);

impl fmt::Display for Processors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&numbers.join(", "))
    }
}

impl Processors {
    /// Those of this thread.
    #[cfg(target_os = "linux")]
    fn of_this_thread() -> Option<Self> {
        use rustix::thread::{CpuSet, sched_getaffinity};
        let set = sched_getaffinity(None).ok()?;
        Some(Self((0..CpuSet::MAX_CPU).filter(|number| set.is_set(*number)).collect()))
    }

    #[cfg(not(target_os = "linux"))]
    fn of_this_thread() -> Option<Self> {
        None
    }

    /// This thread, and what it starts, uses no others from now on.
    #[cfg(target_os = "linux")]
    fn take(&self) -> Result<()> {
        let mut set = rustix::thread::CpuSet::new();
        self.0.iter().for_each(|number| set.set(*number));
        Ok(rustix::thread::sched_setaffinity(None, &set)?)
    }

    #[cfg(not(target_os = "linux"))]
    fn take(&self) -> Result<()> {
        Err(format!("processes cannot be kept on the processors {self} here").into())
    }
}

/// The processors of this machine in two halves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Apart {
    all: Processors,
    database: Processors,
    workers: Processors,
}

impl fmt::Display for Apart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the database on {}, the workers on {}", self.database, self.workers)
    }
}

/// What is started.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part {
    Database,
    Workers,
}

impl Apart {
    /// `None` where there is only one processor, or processes cannot be kept on some.
    pub(super) fn of_this_machine() -> Option<Self> {
        Self::of(Processors::of_this_thread()?)
    }

    fn of(all: Processors) -> Option<Self> {
        let (database, workers) = all.0.split_at(all.0.len() / 2);
        let (database, workers) = (Processors(database.to_vec()), Processors(workers.to_vec()));
        (!database.0.is_empty()).then_some(Self { all, database, workers })
    }

    /// Starts processes of a part on its processors.
    fn start<T>(&self, part: Part, start: impl FnOnce() -> Result<T>) -> Result<T> {
        match part {
            Part::Database => self.database.take()?,
            Part::Workers => self.workers.take()?,
        }
        let started = start();
        self.all.take()?;
        started
    }
}

/// Starts processes of a part on its processors, or on all of them where they are not apart.
pub(super) fn start<T>(apart: Option<&Apart>, part: Part, start: impl FnOnce() -> Result<T>) -> Result<T> {
    match apart {
        Some(apart) => apart.start(part, start),
        None => start(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use super::*;

    #[test]
    fn the_processors_are_halved_if_there_are_two() {
        let of = |numbers: &[usize]| Apart::of(Processors(numbers.to_vec())).map(|apart| apart.to_string());
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[3]), None);
        assert_eq!(of(&[0, 1]), Some("the database on 0, the workers on 1".into()));
        assert_eq!(of(&[0, 2, 4]), Some("the database on 0, the workers on 2, 4".into()));
    }

    #[test]
    fn what_is_started_apart_uses_the_processors_of_its_part() {
        // A machine with one processor has no parts.
        let Some(apart) = Apart::of_this_machine() else { return };
        let parts = [(Part::Database, &apart.database), (Part::Workers, &apart.workers)];
        for (part, processors) in parts {
            let mine = start(Some(&apart), part, || Ok(Processors::of_this_thread())).unwrap();
            assert_eq!(mine.as_ref(), Some(processors));
        }
        assert_eq!(Processors::of_this_thread(), Some(apart.all), "and then all again");
    }
}
