// Collection of the values of keys that appear one after another.

#ifndef HAWSER_STORE_COLLECT_VALUES_H_
#define HAWSER_STORE_COLLECT_VALUES_H_

#include <string>
#include <vector>

#include "async/future.h"
#include "store/store.h"

namespace hawser::store {

// Completes with the values of `keys`, in their order, once each of them has
// had a value that is not empty: the value when it was first seen. Watches a
// limited number of keys at a time, so that the cost of a key does not depend
// on the number of keys.
//
// Without timeout: Cancel the future to end the collection. Errors are those of
// Store::WhenChanged. `store` must outlive the collection.
async::Future<std::vector<std::string>> CollectValues(
    Store* store, std::vector<std::string> keys);

}  // namespace hawser::store

#endif  // HAWSER_STORE_COLLECT_VALUES_H_
