#include "autograd/grad_mode.h"

#include <utility>

namespace hawser::autograd {
namespace {

thread_local bool grad_enabled = true;

}  // namespace

bool GradEnabled() { return grad_enabled; }

NoGradGuard::NoGradGuard() : previous_(std::exchange(grad_enabled, false)) {}
NoGradGuard::~NoGradGuard() { grad_enabled = previous_; }

EnableGradGuard::EnableGradGuard()
    : previous_(std::exchange(grad_enabled, true)) {}
EnableGradGuard::~EnableGradGuard() { grad_enabled = previous_; }

}  // namespace hawser::autograd
