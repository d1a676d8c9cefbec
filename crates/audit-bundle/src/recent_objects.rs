//! The objects that were read last. Consecutive versions are read one after the other.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

const BYTES_MAX: usize = 64 << 20;

#[derive(Debug)]
pub(crate) struct RecentObjects<K> {
    objects: BTreeMap<K, Rc<Vec<u8>>>,
    order: VecDeque<K>,
    bytes: usize,
}

impl<K> Default for RecentObjects<K> {
    fn default() -> Self {
        Self { objects: BTreeMap::new(), order: VecDeque::new(), bytes: 0 }
    }
}

impl<K: Clone + Ord> RecentObjects<K> {
    pub(crate) fn get(&self, key: &K) -> Option<Rc<Vec<u8>>> {
        self.objects.get(key).cloned()
    }

    pub(crate) fn insert(&mut self, key: K, bytes: Vec<u8>) -> Rc<Vec<u8>> {
        let object = Rc::new(bytes);
        self.bytes += object.len();
        if let Some(before) = self.objects.insert(key.clone(), Rc::clone(&object)) {
            self.bytes -= before.len();
        } else {
            self.order.push_back(key);
        }
        while self.bytes > BYTES_MAX {
            let Some(oldest) = self.order.pop_front() else { break };
            self.bytes -= self.objects.remove(&oldest).map_or(0, |object| object.len());
        }
        object
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_objects_make_room() {
        let mut recent = RecentObjects::default();
        for nth in 0..5 {
            recent.insert(nth, vec![0; BYTES_MAX / 4]);
        }
        let kept: Vec<i32> = (0..5).filter(|nth| recent.get(nth).is_some()).collect();
        assert_eq!(kept, [1, 2, 3, 4]);
        recent.insert(1, vec![0; 1]);
        assert_eq!(recent.get(&1).unwrap().len(), 1);
    }
}
