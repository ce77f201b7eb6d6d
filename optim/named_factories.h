// Factories that a program adds to its process, by name.

#ifndef HAWSER_OPTIM_NAMED_FACTORIES_H_
#define HAWSER_OPTIM_NAMED_FACTORIES_H_

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "async/mutex.h"

namespace hawser::optim {

namespace internal {

// Errors of NamedFactories::Register, apart from a repeated name.
absl::Status CheckNamedFactory(std::string_view kind, std::string_view name,
                               bool has_factory);
absl::Status RepeatedFactory(std::string_view kind, std::string_view name);

}  // namespace internal

// The factories of one kind. Factory is a std::function.
//
// Thread-safe.
template <class Factory>
class NamedFactories {
 public:
  using Map = std::map<std::string, Factory, std::less<>>;

  // `kind`, for errors, with its article: "an update rule". It must be a
  // literal.
  explicit NamedFactories(std::string_view kind, Map factories = {})
      : kind_(kind), factories_(std::move(factories)) {}

  // kInvalidArgument: the name is not one of 1 to 100 letters, digits, '_', '-'
  // and '.', or there is no factory. kAlreadyExists: the name is taken.
  absl::Status Register(std::string_view name, Factory factory) {
    if (absl::Status status =
            internal::CheckNamedFactory(kind_, name, factory != nullptr);
        !status.ok()) {
      return status;
    }
    const async::MutexLock lock(&mutex_);
    const bool is_new = factories_.emplace(name, std::move(factory)).second;
    return is_new ? absl::OkStatus() : internal::RepeatedFactory(kind_, name);
  }

  // Empty: there is none.
  Factory Find(std::string_view name) const {
    const async::MutexLock lock(&mutex_);
    const auto found = factories_.find(name);
    return found == factories_.end() ? Factory() : found->second;
  }

  // In order.
  std::vector<std::string> names() const {
    const async::MutexLock lock(&mutex_);
    std::vector<std::string> names;
    for (const auto& [name, factory] : factories_) names.push_back(name);
    return names;
  }

 private:
  const std::string_view kind_;
  mutable async::Mutex mutex_;
  Map factories_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::optim

#endif  // HAWSER_OPTIM_NAMED_FACTORIES_H_
