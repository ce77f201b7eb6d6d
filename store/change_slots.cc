#include "store/change_slots.h"

namespace hawser::store::internal {

ChangeSlots::Change::Change(ChangeSlots* slots) : slots_(slots) {
  async::MutexLock lock(&slots_->mutex_);
  if (slots_->free_.empty()) {
    slots_->free_.push_back(slots_->last_sequence_.size());
    slots_->last_sequence_.push_back(0);
  }
  slot_ = slots_->free_.back();
  slots_->free_.pop_back();
  sequence_ = ++slots_->last_sequence_[slot_];
}

ChangeSlots::Change::~Change() {
  async::MutexLock lock(&slots_->mutex_);
  slots_->free_.push_back(slot_);
}

}  // namespace hawser::store::internal
