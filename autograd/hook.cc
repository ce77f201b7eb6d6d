#include "autograd/hook.h"

#include <utility>

namespace hawser::autograd {

HookHandle::HookHandle(std::weak_ptr<internal::HookListBase> list, uint64_t id)
    : list_(std::move(list)), id_(id) {}

void HookHandle::Remove() {
  if (auto list = list_.lock()) list->Remove(id_);
  list_.reset();
}

}  // namespace hawser::autograd
