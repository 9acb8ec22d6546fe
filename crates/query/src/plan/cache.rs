//! Plans by the text of their queries: applications ask the same few queries over and over.

use std::num::NonZeroUsize;
use std::sync::Arc;

use lru::LruCache;
use parking_lot::Mutex;

use crate::error::Result;
use crate::plan::Plan;

/// Plans kept.
const PLANS_MAX: usize = 512;
/// Texts of more bytes are not kept: they hold values that will not come again.
const TEXT_SIZE_MAX: usize = 16 << 10;

/// The plans of the latest queries.
pub(crate) struct Plans {
    plans: Mutex<LruCache<Box<str>, Arc<Plan>>>,
}

impl Default for Plans {
    fn default() -> Plans {
        let size = NonZeroUsize::new(PLANS_MAX).unwrap_or(NonZeroUsize::MIN);
        Plans { plans: Mutex::new(LruCache::new(size)) }
    }
}

impl Plans {
    /// The plan of a query. One that makes no sense is not kept.
    pub(crate) fn get(&self, text: &str) -> Result<Arc<Plan>> {
        if let Some(plan) = self.plans.lock().get(text) {
            return Ok(plan.clone());
        }
        let plan = Arc::new(Plan::new(text)?);
        if text.len() <= TEXT_SIZE_MAX {
            self.plans.lock().put(text.into(), plan.clone());
        }
        Ok(plan)
    }
}
