//! A cache of values that are each valid for one version of what they were read from.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Values by key, each with the version of its source.
#[derive(Debug)]
pub(super) struct VersionedCache<K, V, T> {
    entries: Mutex<BTreeMap<K, (V, T)>>,
    entries_max: usize,
}

impl<K: Ord, V: PartialEq, T: Clone> VersionedCache<K, V, T> {
    /// A cache that is cleared when it would hold more than `entries_max` values.
    pub(super) fn new(entries_max: usize) -> Self {
        Self { entries: Mutex::default(), entries_max }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<K, (V, T)>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The cached value, if it is of this version.
    pub(super) fn known(&self, key: &K, version: &V) -> Option<T> {
        self.lock().get(key).filter(|(known, _)| known == version).map(|(_, value)| value.clone())
    }

    /// The cached value of this version, or the one that `read` returns. The lock is not held while it reads: two
    /// requests may both read the same.
    pub(super) fn get_or_read<E>(
        &self,
        key: K,
        version: V,
        read: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        if let Some(value) = self.known(&key, &version) {
            return Ok(value);
        }
        let value = read()?;
        let mut entries = self.lock();
        if entries.len() >= self.entries_max && !entries.contains_key(&key) {
            entries.clear();
        }
        entries.insert(key, (version, value.clone()));
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn value_is_read_once_per_version() {
        let (cache, reads) = (VersionedCache::new(2), Cell::new(0));
        let get = |key: &'static str, version: u32| {
            cache.get_or_read(key, version, || {
                reads.set(reads.get() + 1);
                Ok::<_, ()>(format!("{key}{version}"))
            })
        };
        assert_eq!((get("a", 1), get("a", 1), reads.get()), (Ok("a1".to_owned()), Ok("a1".to_owned()), 1));
        assert_eq!((get("a", 2), reads.get()), (Ok("a2".to_owned()), 2));
        assert_eq!((get("b", 1), get("c", 1)), (Ok("b1".to_owned()), Ok("c1".to_owned())));
        assert_eq!((get("a", 2), reads.get()), (Ok("a2".to_owned()), 5), "a full cache is cleared");
    }

    #[test]
    fn failed_read_is_not_cached() {
        let cache: VersionedCache<&str, u32, u32> = VersionedCache::new(2);
        assert_eq!(cache.get_or_read("a", 1, || Err("gone")), Err("gone"));
        assert_eq!(cache.get_or_read("a", 1, || Ok::<_, &str>(7)), Ok(7));
    }
}
